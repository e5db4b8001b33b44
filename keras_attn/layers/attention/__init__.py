"""Attention mechanisms, one a file, and what they share."""
