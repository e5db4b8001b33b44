"""Pure functions on tensors: masks, dot-product attention, positions."""

from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.masks import (
    attention_mask,
    causal_mask,
    combine_masks,
    padding_mask,
    separate_masks,
)
from keras_attn.ops.positions import sinusoidal_positions

__all__ = [
    "attention_mask",
    "causal_mask",
    "combine_masks",
    "dot_product_attention",
    "padding_mask",
    "separate_masks",
    "sinusoidal_positions",
]
