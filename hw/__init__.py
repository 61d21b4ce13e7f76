"""Generator of synthesizable RTL for accelerators of sparse diffusion transformers."""
