"""Bench, tests and properties of ``token_selector``."""
