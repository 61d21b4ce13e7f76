"""The parts of the synthesis flow; :mod:`hw.synth` puts them together."""
