"""Every attention mechanism, ready to be held against the contract that they share."""

import dataclasses
from collections.abc import Callable

from keras_attn import layers


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """How a mechanism is made, and which parts of the contract it has.

    Attributes:
        make: Makes the layer; takes Keras' own arguments such as `dtype`.
        crosses: Whether query and value may be different sequences.
        pairs: Whether `attention_mask` may differ between queries.
        scores: Whether it returns attention probabilities.
        causal: Whether it takes `use_causal_mask`.
        always_causal: Whether it is causal without `use_causal_mask` too.
        steps: Whether it decodes step by step.
        slopes: Whether its gradients are its slopes; none goes into a memory of its own.
    """

    make: Callable
    crosses: bool = True
    pairs: bool = True
    scores: bool = True
    causal: bool = True
    always_causal: bool = False
    steps: bool = True
    slopes: bool = True


def _of(layer, *given, **arguments):
    return lambda **keywords: layer(*given, **arguments, **keywords)


MECHANISMS = {
    "multi-head": Mechanism(_of(layers.MultiHeadAttention, 2, 3)),
    "multi-head, chunked": Mechanism(
        _of(layers.MultiHeadAttention, 2, 3, flash_attention=True), scores=False
    ),
    "multi-head, rotary": Mechanism(
        _of(layers.MultiHeadAttention, 2, 4, relative_positions=layers.RotaryEmbedding()),
        crosses=False,
    ),
    "multi-head, relative": Mechanism(
        _of(layers.MultiHeadAttention, 2, 3, relative_positions=layers.RelativePositionBias(2)),
        crosses=False,
    ),
    "multi-head, ALiBi": Mechanism(
        _of(layers.MultiHeadAttention, 2, 3, relative_positions=layers.AlibiBias(2)),
        crosses=False,
    ),
    "multi-head, Transformer-XL": Mechanism(
        _of(
            layers.MultiHeadAttention,
            2,
            3,
            relative_positions=layers.TransformerXLPositions(2, 3),
        ),
        crosses=False,
    ),
    "recurrent memory": Mechanism(
        _of(layers.RecurrentMemoryAttention, 2, 3, memory_length=4), crosses=False
    ),
    "compressive memory": Mechanism(
        _of(layers.CompressiveMemoryAttention, 2, 3, memory_length=4, compressed_length=2),
        crosses=False,
    ),
    "segmented, recurrent memory": Mechanism(
        _of(layers.SegmentRecurrence, layers.RecurrentMemoryAttention(2, 3, 5), 4),
        crosses=False,
        pairs=False,
        scores=False,
        slopes=False,
    ),
    "segmented, compressive memory": Mechanism(
        _of(
            layers.SegmentRecurrence,
            layers.CompressiveMemoryAttention(2, 3, 2, 3, compression_rate=2),
            5,
        ),
        crosses=False,
        pairs=False,
        scores=False,
        slopes=False,
    ),
    "local": Mechanism(
        _of(layers.LocalAttention, 2, 3, 4), crosses=False, pairs=False, scores=False
    ),
    "local, rotary": Mechanism(
        _of(layers.LocalAttention, 2, 4, 4, relative_positions=layers.RotaryEmbedding()),
        crosses=False,
        pairs=False,
        scores=False,
    ),
    "local, relative": Mechanism(
        _of(layers.LocalAttention, 2, 3, 4, relative_positions=layers.RelativePositionBias(2)),
        crosses=False,
        pairs=False,
        scores=False,
    ),
    "global and local": Mechanism(
        _of(layers.GlobalLocalAttention, 2, 3, radius=2, global_length=2, max_distance=1),
        crosses=False,
        pairs=False,
        scores=False,
        causal=False,
        steps=False,
    ),
    "simple": Mechanism(_of(layers.SimpleSelfAttention)),
    "additive": Mechanism(_of(layers.AdditiveAttention, 5)),
    "Luong, dot": Mechanism(_of(layers.LuongAttention, "dot")),
    "Luong, general": Mechanism(_of(layers.LuongAttention, "general")),
    "Luong, concat": Mechanism(_of(layers.LuongAttention, "concat")),
    "dense synthesizer": Mechanism(_of(layers.DenseSynthesizer, 2, 3, 13), crosses=False),
    "factorized dense synthesizer": Mechanism(
        _of(layers.FactorizedDenseSynthesizer, 2, 3, 15), crosses=False
    ),
    "random synthesizer": Mechanism(_of(layers.RandomSynthesizer, 2, 3, 13), crosses=False),
    "factorized random synthesizer": Mechanism(
        _of(layers.FactorizedRandomSynthesizer, 2, 3, 13), crosses=False
    ),
    "mixture": Mechanism(
        _of(
            layers.SynthesizerMixture,
            2,
            3,
            15,
            members=("dense", "factorized_dense", "random", "factorized_random", "dot_product"),
        ),
        crosses=False,
    ),
    "LSH": Mechanism(
        _of(layers.LSHAttention, 2, 3, num_buckets=4, chunk_length=4, seed=1),
        crosses=False,
        pairs=False,
        scores=False,
    ),
    "linear": Mechanism(_of(layers.LinearAttention, 2, 3), pairs=False, scores=False),
    "linear, rotary": Mechanism(
        _of(layers.LinearAttention, 2, 4, relative_positions=layers.RotaryEmbedding()),
        crosses=False,
        pairs=False,
        scores=False,
    ),
}
