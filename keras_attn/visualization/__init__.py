"""Attention looked at: maps of any model, pictures, a page, images for TensorBoard."""

from keras_attn.visualization.attention_map import AttentionMap
from keras_attn.visualization.attention_maps import attention_maps
from keras_attn.visualization.rollout import attention_rollout
from keras_attn.visualization.text_attention import LayerAttention, TextAttention, text_attention

__all__ = [
    "AttentionMap",
    "LayerAttention",
    "TextAttention",
    "attention_maps",
    "attention_rollout",
    "text_attention",
]
