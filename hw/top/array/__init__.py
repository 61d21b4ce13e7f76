"""The parts of the array path: what feeds the dot-product units, and what becomes of their scores."""
