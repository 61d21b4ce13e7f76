"""The accelerator: its model, its parts, and programs through memory."""
