"""Tokens and images on disk, mapped into memory, and the cache that keeps them."""
