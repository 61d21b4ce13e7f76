"""``make bench``: workloads on the core's Verilog and in the cycle model, one table."""
