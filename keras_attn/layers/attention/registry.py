"""Registry of the attention mechanisms by name."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.attention.big_bird_attention import BigBirdAttention
from keras_attn.layers.attention.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.attention.convolved_attention import ConvolvedAttention
from keras_attn.layers.attention.delta_rule_attention import DeltaRuleAttention
from keras_attn.layers.attention.disentangled_attention import DisentangledAttention
from keras_attn.layers.attention.gated_linear_attention import GatedLinearAttention
from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.attention.linear_attention import LinearAttention
from keras_attn.layers.attention.linformer_attention import LinformerAttention
from keras_attn.layers.attention.local_attention import LocalAttention
from keras_attn.layers.attention.longformer_attention import LongformerAttention
from keras_attn.layers.attention.lsh_attention import LSHAttention
from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.attention.nystrom_attention import NystromAttention
from keras_attn.layers.attention.performer_attention import PerformerAttention
from keras_attn.layers.attention.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.attention.segment_recurrence import SegmentRecurrence
from keras_attn.layers.attention.simple_self_attention import SimpleSelfAttention
from keras_attn.layers.attention.sinkhorn_attention import SinkhornAttention
from keras_attn.layers.attention.sparse_attention import SparseAttention
from keras_attn.layers.attention.synthesizers import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
    SynthesizerMixture,
)
from keras_attn.layers.positions.registry import known_arguments, named_positions
from keras_attn.validation import making, require_one_of

_WINDOW = 33  # positions: the middle one and 16 on each side for `global_local`, 32 for `local`
_CHUNK = 32
_PROJECTED = 64  # mixtures of positions, or landmarks
_SEGMENTS = {"segment_length": _CHUNK, "memory_length": _CHUNK}


def _buckets(max_length: int) -> int:
    """As in the paper: buckets of half a chunk."""
    return max(2, 2 * max_length // _CHUNK // 2 * 2)


ATTENTION: Mapping[str, tuple[type, dict[str, Any]]] = {
    "dense": (MultiHeadAttention, {}),
    "disentangled": (DisentangledAttention, {}),
    "local": (LocalAttention, {"sliding_window": _WINDOW}),
    "global_local": (GlobalLocalAttention, {"radius": _WINDOW // 2, "global_length": 4}),
    "lsh": (LSHAttention, {"num_buckets": _buckets, "chunk_length": _CHUNK}),
    "recurrent_memory": (RecurrentMemoryAttention, _SEGMENTS),
    "compressive_memory": (CompressiveMemoryAttention, _SEGMENTS | {"compressed_length": _CHUNK}),
    "longformer": (LongformerAttention, {"sliding_window": _WINDOW // 2 + 1}),
    "big_bird": (BigBirdAttention, {"block_length": _CHUNK // 2}),
    "sparse": (SparseAttention, {"stride": _CHUNK}),
    "sinkhorn": (SinkhornAttention, {"block_length": _CHUNK}),
    "linformer": (LinformerAttention, {"projected_length": _PROJECTED}),
    "nystrom": (NystromAttention, {"num_landmarks": _PROJECTED}),
    "linear": (LinearAttention, {}),
    "performer": (PerformerAttention, {}),
    "gated_linear": (GatedLinearAttention, {}),
    "delta_rule": (DeltaRuleAttention, {}),
    "dense_synthesizer": (DenseSynthesizer, {}),
    "factorized_dense_synthesizer": (FactorizedDenseSynthesizer, {}),
    "random_synthesizer": (RandomSynthesizer, {}),
    "factorized_random_synthesizer": (FactorizedRandomSynthesizer, {}),
    "synthesizer_mixture": (SynthesizerMixture, {}),
    "simple": (SimpleSelfAttention, {}),
    "additive": (AdditiveAttention, {"units": 64}),
    "luong": (LuongAttention, {"score": "general"}),
}
"""For each name the class, and arguments in place of its own defaults.

Functions are called with the greatest length. A `segment_length` is that of `SegmentRecurrence`.
"""


def named_attention(
    name: str,
    num_heads: int,
    key_dim: int,
    max_length: int,
    short_convolution: int | None = None,
    **options: Any,
) -> keras.layers.Layer:
    """Makes the attention layer of a name.

    Args:
        name: One of `ATTENTION`.
        num_heads: Number of heads, where there are any.
        key_dim: Size of each head's query and key, where there are heads.
        max_length: Greatest length, for mechanisms that need it.
        short_convolution: The `kernel_size` of a `ConvolvedAttention` around the mechanism.
        **options: Further arguments of the layer's class, in place of this module's own;
            `relative_positions` may be a name too, or a mapping (see `named_positions`).

    Returns:
        The layer.

    Raises:
        UserError: There is no mechanism of that name, or the layer has no such argument.
    """
    require_one_of("attention", name, ATTENTION)
    kind, defaults = ATTENTION[name]
    # Layers without a use for relative positions say where else to put them.
    relative = {key: options.pop(key) for key in ("relative_positions",) if key in options}
    sizes = {"num_heads": num_heads, "key_dim": key_dim, "max_length": max_length}
    defaults = {
        key: value(max_length) if callable(value) else value for key, value in defaults.items()
    }
    arguments = known_arguments(f"attention {name}", kind, sizes, defaults, options) | relative
    if isinstance(arguments.get("relative_positions"), str | Mapping):
        positions = named_positions(arguments["relative_positions"], num_heads, key_dim)
        arguments["relative_positions"] = positions
    with making(f"attention {name}"):
        segment_length = arguments.pop("segment_length", None)
        layer = kind(**arguments)
        if segment_length is not None:
            layer = SegmentRecurrence(layer, segment_length)
        return ConvolvedAttention(layer, short_convolution) if short_convolution else layer
