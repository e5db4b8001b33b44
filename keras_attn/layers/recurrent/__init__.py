"""Recurrent layers that attend."""
