"""Rows of a command: their numbers, their addresses, the scan of their masks."""
