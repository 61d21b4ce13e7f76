"""Bench, tests and properties of ``mixed_precision_core``, and a trained model whose layers it computes."""
