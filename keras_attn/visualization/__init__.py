"""Visualization of attention: maps of any model, pictures, a page, images for TensorBoard."""

from keras_attn.visualization.attention_map import AttentionMap
from keras_attn.visualization.attention_maps import attention_maps
from keras_attn.visualization.callback import AttentionImages
from keras_attn.visualization.html_page import write_page
from keras_attn.visualization.picture import draw_attention
from keras_attn.visualization.text_attention import (
    LayerAttention,
    TextAttention,
    attention_rollout,
    model_attention,
    text_attention,
)

__all__ = [
    "AttentionImages",
    "AttentionMap",
    "LayerAttention",
    "TextAttention",
    "attention_maps",
    "attention_rollout",
    "draw_attention",
    "model_attention",
    "text_attention",
    "write_page",
]
