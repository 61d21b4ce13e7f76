"""Formal properties of the emitted Verilog, and the engines that prove them."""
