"""Bench, tests and properties of ``layer_norm_unit``."""
