"""Bit-exact NumPy models that define what the hardware computes."""
