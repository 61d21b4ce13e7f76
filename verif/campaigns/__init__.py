"""Measuring the tests themselves: coverage, mutation, gate level, faults, fuzzing, lint, power."""
