"""Bench, tests and properties of ``dot_product_unit``."""
