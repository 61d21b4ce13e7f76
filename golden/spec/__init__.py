"""Definitions that models and hardware share: commands, sizes, formats, tables. It imports nothing of this project."""
