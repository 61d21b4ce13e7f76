"""Tests and properties of streams and memories."""
