"""A RISC-V system in Verilog whose C program runs an attention head on the accelerator: ``make soc``."""
