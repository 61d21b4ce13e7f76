"""The parts of the array path: operand feeders of the dot-product units, and writers of their results."""
