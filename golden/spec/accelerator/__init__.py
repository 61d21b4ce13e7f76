"""The accelerator's interface to software and bus: parameters, descriptors, transfers, registers, error codes."""
