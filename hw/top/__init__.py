"""The core: blocks put together under commands."""
