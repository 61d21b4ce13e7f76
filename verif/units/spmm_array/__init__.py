"""Bench, tests and properties of ``spmm_array``."""
