"""The parts of the synthesis flow; :mod:`hw.synthesis.flow` puts them together."""
