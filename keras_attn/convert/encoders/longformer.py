"""Conversion of Hugging Face's Longformer."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_attn.convert.encoders.bert import ROBERTA
from keras_attn.convert.encoders.family import OF_QUESTIONS, head_sizes, map_heads
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.layers import LocalAttention, LongformerAttention
from keras_attn.validation import is_integer, require

_GLOBAL_ROLES = ("query_global", "key_global", "value_global")


def _attention(
    config: Mapping[str, Any], arguments: Mapping[str, Any], global_length: int = 1
) -> list[keras.layers.Layer]:
    """The attention of each block, with the first positions as global ones."""
    count, windows = arguments["num_layers"], config.get("attention_window", 512)
    windows = windows if isinstance(windows, list) else [windows] * count
    require(
        len(windows) == count and all(is_integer(w) and w > 0 and w % 2 == 0 for w in windows),
        "`attention_window` must be an even number, or a list with one for each layer.",
        attention_window=config.get("attention_window"),
    )
    require(
        is_integer(global_length) and global_length >= 0,
        "`global_length` must be an integer, 0 or more.",
        global_length=global_length,
    )
    sizes = head_sizes(arguments)
    if global_length == 0:
        return [LocalAttention(**sizes, sliding_window=window // 2 + 1) for window in windows]
    options = sizes | {"global_length": global_length}
    return [LongformerAttention(**options, sliding_window=window // 2 + 1) for window in windows]


def _map_attention(
    weights: WeightMap, attention: keras.layers.Layer, modules: Sequence[str]
) -> None:
    map_heads(weights, attention, modules)
    if isinstance(attention, LocalAttention):
        weights.ignore(rf"encoder\.layer\.\d+\.attention\.self\.({'|'.join(_GLOBAL_ROLES)})\..*")
        return
    for projection in attention.global_projections:
        roles = [
            f"{module}_global" for module in modules if module.endswith(tuple(projection.heads))
        ]
        weights.copy_linear(projection, *roles)


LONGFORMER = dataclasses.replace(
    ROBERTA,
    model_type="longformer",
    name="Longformer",
    prefix="longformer.",
    attention=_attention,
    mapping=lambda config: _map_attention,
    defaults={"pad_token_id": 1},
    others=("attention_window",),
    options=("global_length",),
    other_heads=(OF_QUESTIONS,),  # whose questions are global positions
    written=lambda encoder, model: {
        "attention_window": [
            2 * (getattr(block.attention, "sliding_window", 1) - 1) for block in encoder.blocks
        ]
    },
)
"""RoBERTa with windows, and global positions with projections of their own."""
