"""Linear layers on differences of activations (DSTAR's FMDQ): bit-exact layers, and statistics of any activations."""
