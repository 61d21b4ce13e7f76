"""The core: blocks under a command controller."""
