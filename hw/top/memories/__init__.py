"""The memories that several parts of the core share."""
