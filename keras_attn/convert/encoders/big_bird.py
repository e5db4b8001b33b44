"""Conversion of Hugging Face's BigBird."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras

from keras_attn.convert.encoders.family import (
    OF_QUESTIONS,
    EncoderFamily,
    head_sizes,
    map_heads,
)
from keras_attn.layers import BigBirdAttention, MultiHeadAttention
from keras_attn.models import Bert
from keras_attn.validation import require_one_of

_SPARSE, _FULL = "block_sparse", "original_full"


def _attention(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> keras.layers.Layer:
    """Attention as transformers computes it outside of training."""
    sizes = head_sizes(arguments)
    kind = config.get("attention_type", _SPARSE)
    require_one_of("attention_type", kind, (_SPARSE, _FULL))
    if kind == _FULL:
        return MultiHeadAttention(**sizes)
    block_length = config.get("block_size", 64)
    num_random_blocks = config.get("num_random_blocks", 3)
    return BigBirdAttention(
        **sizes,
        block_length=block_length,
        num_random_blocks=num_random_blocks,
        repeat_first=True,
        # Shorter inputs attend to everything there.
        full_length=(5 + 2 * num_random_blocks) * block_length,
    )


def _mapping(config: Mapping[str, Any]) -> Any:
    return partial(map_heads, bias=config.get("use_bias", True))


def _further(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"scale_embedding": bool(config.get("rescale_embeddings", False))}


def _written(encoder: Bert, model: Any) -> dict[str, Any]:
    sparse = isinstance(encoder.blocks[0].attention, BigBirdAttention)
    return {
        "attention_type": _SPARSE if sparse else _FULL,
        "rescale_embeddings": encoder.get_config()["scale_embedding"],
        "use_bias": True,
    }


BIG_BIRD = EncoderFamily(
    model_type="big_bird",
    name="BigBird",
    prefix="bert.",
    activation="gelu_new",
    attention=_attention,
    mapping=_mapping,
    defaults={"vocab_size": 50_358, "max_position_embeddings": 4096, "pad_token_id": 0},
    others=("attention_type", "block_size", "num_random_blocks", "rescale_embeddings", "use_bias"),
    further=_further,
    pooler="pooler",
    other_heads=(OF_QUESTIONS,),  # with a feed-forward network of its own
    written=_written,
)
"""BERT whose blocks of positions attend to their neighbors and to both ends."""
