"""The standard testbench of each unit: stimulus and expectation."""
