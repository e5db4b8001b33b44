"""Registry of the attention mechanisms by name."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.attention.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.attention.linear_attention import LinearAttention
from keras_attn.layers.attention.local_attention import LocalAttention
from keras_attn.layers.attention.lsh_attention import LSHAttention
from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.attention.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.attention.segment_recurrence import SegmentRecurrence
from keras_attn.layers.attention.simple_self_attention import SimpleSelfAttention
from keras_attn.layers.attention.synthesizer_mixture import SynthesizerMixture
from keras_attn.layers.attention.synthesizers import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
)
from keras_attn.layers.positions.registry import named_positions
from keras_attn.validation import making, require_one_of

_WINDOW = 33  # positions: the middle one and 16 on each side for `global_local`, 32 for `local`
_CHUNK = 32


class Mechanism:
    """Makes layers of one class, with heads.

    Args:
        kind: The class.
        **defaults: Arguments in place of the class's own defaults; functions are called with the
            greatest length.
    """

    sizes = ("num_heads", "key_dim", "max_length")

    def __init__(self, kind: type, **defaults: Any):
        self._kind = kind
        self._defaults = defaults

    @property
    def arguments(self) -> list[str]:
        """Names of the arguments besides the sizes."""
        names = dict.fromkeys([*inspect.signature(self._kind).parameters, *self._defaults])
        return [name for name in names if name not in ("kwargs", *self.sizes)]

    def make(
        self, num_heads: int, key_dim: int, max_length: int, **options: Any
    ) -> keras.layers.Layer:
        """Makes a layer (see `named_attention`)."""
        return self._kind(num_heads, key_dim, **self._given(max_length, options))

    def _given(self, max_length: int, options: Mapping[str, Any]) -> dict[str, Any]:
        defaults = {
            name: value(max_length) if callable(value) else value
            for name, value in self._defaults.items()
        }
        return defaults | dict(options)


class _Whole(Mechanism):
    """Makes layers without heads."""

    def make(self, num_heads, key_dim, max_length, **options):
        return self._kind(**self._given(max_length, options))


class _Segmented(Mechanism):
    """Makes layers of heads with a memory, which read whole sequences in segments."""

    def make(self, num_heads, key_dim, max_length, **options):
        given = self._given(max_length, options)
        segment_length = given.pop("segment_length")
        return SegmentRecurrence(self._kind(num_heads, key_dim, **given), segment_length)


def _length(max_length: int) -> int:
    return max_length


def _buckets(max_length: int) -> int:
    """As in the paper: buckets of half a chunk."""
    return max(2, 2 * max_length // _CHUNK // 2 * 2)


ATTENTION: Mapping[str, Mechanism] = {
    "dense": Mechanism(MultiHeadAttention),
    "local": Mechanism(LocalAttention, sliding_window=_WINDOW),
    "global_local": Mechanism(GlobalLocalAttention, radius=_WINDOW // 2, global_length=4),
    "lsh": Mechanism(LSHAttention, num_buckets=_buckets, chunk_length=_CHUNK),
    "recurrent_memory": _Segmented(
        RecurrentMemoryAttention, segment_length=_CHUNK, memory_length=_CHUNK
    ),
    "compressive_memory": _Segmented(
        CompressiveMemoryAttention,
        segment_length=_CHUNK,
        memory_length=_CHUNK,
        compressed_length=_CHUNK,
    ),
    "linear": Mechanism(LinearAttention),
    "dense_synthesizer": Mechanism(DenseSynthesizer, max_length=_length),
    "factorized_dense_synthesizer": Mechanism(FactorizedDenseSynthesizer, max_length=_length),
    "random_synthesizer": Mechanism(RandomSynthesizer, max_length=_length),
    "factorized_random_synthesizer": Mechanism(FactorizedRandomSynthesizer, max_length=_length),
    "synthesizer_mixture": Mechanism(SynthesizerMixture, max_length=_length),
    "simple": _Whole(SimpleSelfAttention),
    "additive": _Whole(AdditiveAttention, units=64),
    "luong": _Whole(LuongAttention, score="general"),
}
"""For each name what makes the layers."""


def named_attention(
    name: str, num_heads: int, key_dim: int, max_length: int, **options: Any
) -> keras.layers.Layer:
    """Makes the attention layer of a name.

    Args:
        name: One of `ATTENTION`.
        num_heads: Number of heads, where there are any.
        key_dim: Size of each head's query and key, where there are heads.
        max_length: Greatest length, for mechanisms that need it.
        **options: Further arguments of the layer's class, in place of this module's own;
            `relative_positions` may be a name too, or a mapping (see `named_positions`).

    Returns:
        The layer.

    Raises:
        UserError: There is no mechanism of that name, or the layer has no such argument.
    """
    require_one_of("attention", name, ATTENTION)
    mechanism = ATTENTION[name]
    # Layers without a use for relative positions say where else to put them.
    for option in options:
        if option != "relative_positions":
            require_one_of(f"argument of the attention {name}", option, mechanism.arguments)
    if isinstance(options.get("relative_positions"), str | Mapping):
        relative = named_positions(options["relative_positions"], num_heads, key_dim)
        options |= {"relative_positions": relative}
    with making(f"attention {name}"):
        return mechanism.make(num_heads, key_dim, max_length, **options)
