"""Limits shared by several blocks."""

MAX_INPUT_BITS = (1 << 16) - 2
"""Amaranth numbers the input bits of a module, clock and reset included, with 16 bits."""

MAX_OUTPUT_BITS = 1 << 16
"""Amaranth numbers the output bits of a module with 16 bits."""

MAX_TOKENS = 1 << 13
"""Tokens of a core: four readers take a row of a mask from one memory, and so far it has few enough output bits."""

MAX_SLOTS = 1 << 12
"""Beats of a row, or bits of a bank's part of a mask row."""

MAX_WORDS = 1 << 16
"""Words of a memory of the core: addresses in a command have 16 bits."""

MAX_DIM = 1 << 14
"""Elements of a row of a dense layer."""

MAX_BANKS = 64
"""Banks of the core."""

MAX_LANES = 128
"""Lanes of a dot-product unit of the core, and of an engine."""

MAX_RUN_AHEAD = 8
"""Rows that a dot-product unit may be ahead of the slowest one; the default as well."""
