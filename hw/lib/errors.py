"""Errors that a user can correct."""

__all__ = ["UsageError"]


class UsageError(Exception):
    """An error that the user can correct; reported in one sentence, exit code 2."""
