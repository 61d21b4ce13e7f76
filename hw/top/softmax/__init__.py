"""The SOFTMAX command."""
