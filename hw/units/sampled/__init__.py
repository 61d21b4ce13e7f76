"""The parts of the sampled array."""
