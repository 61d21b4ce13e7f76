"""The properties of each unit."""
