"""Layers that turn tokens, segments and images into vectors."""
