"""Bit-exact floating-point arithmetic and functions on integers."""
