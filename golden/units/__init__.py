"""Models of the blocks, one file a block."""
