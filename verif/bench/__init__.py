"""The testbench runtime: simulators, endpoints, checks."""
