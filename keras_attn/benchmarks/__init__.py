"""Measured workloads behind `keras-attn benchmark`, one a file."""
