"""The parts of the softmax unit."""
