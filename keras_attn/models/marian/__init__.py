"""Marian."""

from keras_attn.models.marian.marian import Marian

__all__ = ["Marian"]
