"""The parts of the vector unit."""
