"""Programs for the core: assembler, placement of data, handles."""
