"""The parts of the dot-product unit."""
