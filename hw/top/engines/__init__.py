"""SPMM: the engines and their banks of values."""
