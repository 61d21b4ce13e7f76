"""The parts of the token selector."""
