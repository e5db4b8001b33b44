"""Attention computed block by block, and the cutting of sequences into blocks."""
