"""Data sets by name: generated, or downloaded once."""
