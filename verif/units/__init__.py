"""Bench, tests and properties of each block."""
