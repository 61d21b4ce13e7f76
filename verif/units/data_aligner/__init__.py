"""Bench, tests and properties of ``data_aligner``."""
