"""Cycle models."""
