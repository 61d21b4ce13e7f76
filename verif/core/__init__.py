"""Benches, programs and tests of the core."""
