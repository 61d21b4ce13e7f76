"""A fuzzer of the command lines and of every file that they read."""
