"""Programs of blocks of diffusion transformers: weights, builders for cores of any size, a float64 reference."""
