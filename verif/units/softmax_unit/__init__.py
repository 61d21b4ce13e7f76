"""Bench, tests and properties of ``softmax_unit``."""
