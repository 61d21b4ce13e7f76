"""The accelerator with its memory: descriptors and bytes in, bytes, registers and interrupts out."""
