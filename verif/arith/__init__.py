"""Tests and properties of the arithmetic."""
