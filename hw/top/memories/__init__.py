"""Memories shared by several parts of the core."""
