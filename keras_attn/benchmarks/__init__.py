"""Implementation of `keras-attn benchmark`, with one module for each benchmark."""
