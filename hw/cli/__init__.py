"""The command line of the generator."""
