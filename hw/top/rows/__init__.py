"""Rows of a command: which they are, where they lie, which elements their mask has."""
