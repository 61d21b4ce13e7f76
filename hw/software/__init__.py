"""Software for the accelerator: the driver in C (sparse_dit.h, sparse_dit.c) and the same calls in Python."""
