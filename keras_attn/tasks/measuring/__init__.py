"""Measures of tasks and models on examples with known answers."""
