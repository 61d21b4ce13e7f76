"""Bench, tests and properties of ``quantizer_unit``."""
