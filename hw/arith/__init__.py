"""Arithmetic building blocks shared by the units."""
