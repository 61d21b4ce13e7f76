"""Between the core and its host: loads, stores, token list."""
