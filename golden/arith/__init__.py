"""Floating-point arithmetic and functions on integers, bit for bit."""
