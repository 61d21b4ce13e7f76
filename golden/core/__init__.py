"""What the core computes: commands, memories, streams, checks."""
