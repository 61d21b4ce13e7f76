"""The blocks a user instantiates, one file each."""
