"""Base classes of models that generate, and how they decode."""
