"""Attention mechanisms by name, for whatever is told by its user which to build a model from."""

from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_attn.layers.additive_attention import AdditiveAttention
from keras_attn.layers.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.dense_synthesizer import DenseSynthesizer
from keras_attn.layers.factorized_dense_synthesizer import FactorizedDenseSynthesizer
from keras_attn.layers.factorized_random_synthesizer import FactorizedRandomSynthesizer
from keras_attn.layers.global_local_attention import GlobalLocalAttention
from keras_attn.layers.linear_attention import LinearAttention
from keras_attn.layers.local_attention import LocalAttention
from keras_attn.layers.lsh_attention import LSHAttention
from keras_attn.layers.luong_attention import LuongAttention
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.random_synthesizer import RandomSynthesizer
from keras_attn.layers.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.segmented_attention import SegmentedAttention
from keras_attn.layers.simple_self_attention import SimpleSelfAttention
from keras_attn.layers.synthesizer_mixture import SynthesizerMixture
from keras_attn.validation import UserError, require_one_of

_WINDOW = 33  # of positions, the middle one among them
_CHUNK = 32


def _headed(kind: type, **defaults: Any) -> Callable:
    """Makes layers of heads; a default that is a function is one of the greatest length."""

    def make(num_heads: int, key_dim: int, max_length: int, **options: Any) -> keras.layers.Layer:
        given = {
            name: value(max_length) if callable(value) else value
            for name, value in defaults.items()
        }
        return kind(num_heads, key_dim, **(given | options))

    return make


def _whole(kind: type, **defaults: Any) -> Callable:
    """Makes layers without heads."""

    def make(num_heads: int, key_dim: int, max_length: int, **options: Any) -> keras.layers.Layer:
        return kind(**(defaults | options))

    return make


def _segmented(kind: type, **defaults: Any) -> Callable:
    """Makes layers of heads with a memory, which read whole sequences in segments."""

    def make(num_heads: int, key_dim: int, max_length: int, **options: Any) -> keras.layers.Layer:
        options = defaults | options
        segment_length = options.pop("segment_length")
        return SegmentedAttention(kind(num_heads, key_dim, **options), segment_length)

    return make


def _length(max_length: int) -> int:
    return max_length


def _buckets(max_length: int) -> int:
    """As in the paper: buckets of half a chunk."""
    return max(2, 2 * max_length // _CHUNK // 2 * 2)


ATTENTION: Mapping[str, Callable] = {
    "dense": _headed(MultiHeadAttention),
    "local": _headed(LocalAttention, sliding_window=_WINDOW),
    "global_local": _headed(GlobalLocalAttention, radius=_WINDOW // 2, global_length=4),
    "lsh": _headed(LSHAttention, num_buckets=_buckets, chunk_length=_CHUNK),
    "recurrent_memory": _segmented(
        RecurrentMemoryAttention, segment_length=_CHUNK, memory_length=_CHUNK
    ),
    "compressive_memory": _segmented(
        CompressiveMemoryAttention,
        segment_length=_CHUNK,
        memory_length=_CHUNK,
        compressed_length=_CHUNK,
    ),
    "linear": _headed(LinearAttention),
    "dense_synthesizer": _headed(DenseSynthesizer, max_length=_length),
    "factorized_dense_synthesizer": _headed(FactorizedDenseSynthesizer, max_length=_length),
    "random_synthesizer": _headed(RandomSynthesizer, max_length=_length),
    "factorized_random_synthesizer": _headed(FactorizedRandomSynthesizer, max_length=_length),
    "synthesizer_mixture": _headed(SynthesizerMixture, max_length=_length),
    "simple": _whole(SimpleSelfAttention),
    "additive": _whole(AdditiveAttention, units=64),
    "luong": _whole(LuongAttention, score="general"),
}
"""From a mechanism's name to what makes its layer."""


def named_attention(
    name: str, num_heads: int, key_dim: int, max_length: int, **options: Any
) -> keras.layers.Layer:
    """Makes the attention layer of a name.

    Args:
        name: One of `ATTENTION`.
        num_heads: Number of heads, where there are any.
        key_dim: Size of each head's query and key, where there are heads.
        max_length: Greatest length, where a mechanism must know it.
        **options: Further arguments of the layer's class, in place of this module's own.

    Returns:
        The layer.

    Raises:
        UserError: There is no mechanism of that name, or the layer has no such argument.
    """
    require_one_of("attention", name, ATTENTION)
    try:
        return ATTENTION[name](num_heads, key_dim, max_length, **options)
    except UserError:
        raise
    except (TypeError, ValueError) as error:  # an argument that the layer does not know
        raise UserError(f"The attention {name} cannot be made: {error}.") from error
