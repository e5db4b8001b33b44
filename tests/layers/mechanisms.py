"""Every attention mechanism, ready to be held against the contract that they share."""

import dataclasses
from collections.abc import Callable
from functools import partial

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


Inside = partial(Mechanism, crosses=False)  # one sequence
ByKeys = partial(Inside, pairs=False, scores=False)  # masks hide keys from all queries alike

MECHANISMS = {
    "multi-head": Mechanism(partial(layers.MultiHeadAttention, 2, 3)),
    "multi-head, chunked": Mechanism(
        partial(layers.MultiHeadAttention, 2, 3, flash_attention=True), scores=False
    ),
    "multi-head, rotary": Inside(
        partial(layers.MultiHeadAttention, 2, 4, relative_positions=layers.RotaryEmbedding())
    ),
    "multi-head, relative": Inside(
        partial(layers.MultiHeadAttention, 2, 3, relative_positions=layers.RelativePositionBias(2))
    ),
    "multi-head, ALiBi": Inside(
        partial(layers.MultiHeadAttention, 2, 3, relative_positions=layers.AlibiBias(2))
    ),
    "multi-head, Transformer-XL": Inside(
        partial(
            layers.MultiHeadAttention, 2, 3, relative_positions=layers.TransformerXLPositions(2, 3)
        )
    ),
    "recurrent memory": Inside(partial(layers.RecurrentMemoryAttention, 2, 3, memory_length=4)),
    "compressive memory": Inside(
        partial(layers.CompressiveMemoryAttention, 2, 3, memory_length=4, compressed_length=2)
    ),
    "segmented, recurrent memory": ByKeys(
        partial(layers.SegmentRecurrence, layers.RecurrentMemoryAttention(2, 3, 5), 4), slopes=False
    ),
    "segmented, compressive memory": ByKeys(
        partial(
            layers.SegmentRecurrence,
            layers.CompressiveMemoryAttention(2, 3, 2, 3, compression_rate=2),
            5,
        ),
        slopes=False,
    ),
    "local": ByKeys(partial(layers.LocalAttention, 2, 3, 4)),
    "local, rotary": ByKeys(
        partial(layers.LocalAttention, 2, 4, 4, relative_positions=layers.RotaryEmbedding())
    ),
    "local, relative": ByKeys(
        partial(layers.LocalAttention, 2, 3, 4, relative_positions=layers.RelativePositionBias(2))
    ),
    "global and local": ByKeys(
        partial(layers.GlobalLocalAttention, 2, 3, radius=2, global_length=2, max_distance=1),
        causal=False,
        steps=False,
    ),
    "simple": Mechanism(layers.SimpleSelfAttention),
    "additive": Mechanism(partial(layers.AdditiveAttention, 5)),
    "Luong, dot": Mechanism(partial(layers.LuongAttention, "dot")),
    "Luong, general": Mechanism(partial(layers.LuongAttention, "general")),
    "Luong, concat": Mechanism(partial(layers.LuongAttention, "concat")),
    "dense synthesizer": Inside(partial(layers.DenseSynthesizer, 2, 3, 13)),
    "factorized dense synthesizer": Inside(partial(layers.FactorizedDenseSynthesizer, 2, 3, 15)),
    "random synthesizer": Inside(partial(layers.RandomSynthesizer, 2, 3, 13)),
    "factorized random synthesizer": Inside(partial(layers.FactorizedRandomSynthesizer, 2, 3, 13)),
    "mixture": Inside(
        partial(
            layers.SynthesizerMixture,
            2,
            3,
            15,
            members=("dense", "factorized_dense", "random", "factorized_random", "dot_product"),
        )
    ),
    "LSH": ByKeys(partial(layers.LSHAttention, 2, 3, num_buckets=4, chunk_length=4, seed=1)),
    "linear": Mechanism(partial(layers.LinearAttention, 2, 3), pairs=False, scores=False),
    "linear, rotary": ByKeys(
        partial(layers.LinearAttention, 2, 4, relative_positions=layers.RotaryEmbedding())
    ),
}
