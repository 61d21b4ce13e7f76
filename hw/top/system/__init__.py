"""Parts of the accelerator around the core: bus, descriptors, transfers, registers."""
