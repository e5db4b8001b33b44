"""Conversion of Hugging Face's Nyströmformer."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attn.convert.encoders.family import EncoderFamily, head_sizes, map_heads
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.layers import NystromAttention
from keras_attn.models import Bert
from keras_attn.validation import is_integer, require

_LANDMARKS = 64
_FIRST_POSITION = 2


def _attention(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> keras.layers.Layer:
    """Attention to landmarks, or the exact one where each position would be a landmark."""
    landmarks, length = _sizes(config)
    require(
        all(is_integer(size) and size > 0 for size in (landmarks, length))
        and length % landmarks == 0,
        "`num_landmarks` must divide `segment_means_seq_len`.",
        num_landmarks=landmarks,
        segment_means_seq_len=length,
    )
    return NystromAttention(
        **head_sizes(arguments),
        num_landmarks=None if landmarks == length else landmarks,
        convolution_width=config.get("conv_kernel_size", 65),
    )


def _map_attention(
    weights: WeightMap, attention: keras.layers.Layer, modules: Sequence[str]
) -> None:
    map_heads(weights, attention, modules)
    if attention.convolution is not None:
        name = modules[0].rpartition(".")[0]
        weights.copy_depthwise(attention.convolution, f"{name}.conv.weight")


def _notes(path: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    landmarks, length = _sizes(config)
    if landmarks == length:
        return ()
    return (
        f"{path}: only texts of {length} tokens (`segment_means_seq_len`) have the outputs of "
        "transformers, whose landmarks include the padding of others.",
    )


def _written(encoder: Bert, model: Any) -> dict[str, Any]:
    """The sizes of landmarks: by default as many as there are positions, for exact attention."""
    landmarks = getattr(encoder.blocks[0].attention, "num_landmarks", None)
    if landmarks is None:
        return {"num_landmarks": _LANDMARKS, "segment_means_seq_len": _LANDMARKS}
    return {"segment_means_seq_len": encoder.max_length // landmarks * landmarks}


def _sizes(config: Mapping[str, Any]) -> tuple[Any, Any]:
    return (
        config.get("num_landmarks", _LANDMARKS),
        config.get("segment_means_seq_len", _LANDMARKS),
    )


NYSTROMFORMER = EncoderFamily(
    model_type="nystromformer",
    name="Nystromformer",
    prefix="nystromformer.",
    activation="gelu_new",
    attention=_attention,
    mapping=lambda config: _map_attention,
    defaults={
        "vocab_size": 30_000,
        "max_position_embeddings": 510,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    },
    only={"inv_coeff_init_option": False},
    others=("conv_kernel_size", "num_landmarks", "segment_means_seq_len"),
    first_position=lambda config: _FIRST_POSITION,
    notes=_notes,
    written=_written,
)
"""BERT with attention estimated from landmarks, and a convolution of the values."""
