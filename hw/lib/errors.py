"""Errors that a user can put right."""

__all__ = ["UsageError"]


class UsageError(Exception):
    """Something the user can put right; told in one sentence, exit code 2."""
