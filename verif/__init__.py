"""Verification of the emitted Verilog against the golden models."""
