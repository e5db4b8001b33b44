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
        averages: Whether contexts are averages of values.
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
    averages: bool = True


Inside = partial(Mechanism, crosses=False)  # one sequence
ByKeys = partial(Inside, pairs=False, scores=False)  # masks hide keys from all queries alike

MEMBERS = ("dense", "factorized_dense", "random", "factorized_random", "dot_product")
MultiHead = partial(layers.MultiHeadAttention, 2)
Local = partial(layers.LocalAttention, 2, sliding_window=4)


def related(kind, make, key_dim, positions):
    """A mechanism within one sequence, with relative positions."""
    return kind(partial(make, key_dim=key_dim, relative_positions=positions))


MECHANISMS = {
    "multi-head": Mechanism(partial(MultiHead, 3)),
    "multi-head, chunked": Mechanism(partial(MultiHead, 3, flash_attention=True), scores=False),
    "multi-head, rotary": related(Inside, MultiHead, 4, layers.RotaryEmbedding()),
    "multi-head, relative": related(Inside, MultiHead, 3, layers.RelativePositionBias(2)),
    "multi-head, ALiBi": related(Inside, MultiHead, 3, layers.AlibiBias(2)),
    "multi-head, Transformer-XL": related(
        Inside, MultiHead, 3, layers.TransformerXLPositions(2, 3)
    ),
    "disentangled": Inside(partial(layers.DisentangledAttention, 2, 3, 4, 9)),
    "disentangled, one part": Inside(
        partial(
            layers.DisentangledAttention,
            *(2, 3, None, 4),
            kinds=("position_to_content",),
            share_projections=False,
            epsilon=None,
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
        partial(layers.SegmentRecurrence, layers.CompressiveMemoryAttention(2, 3, 2, 3, 2), 5),
        slopes=False,
    ),
    "local": ByKeys(partial(Local, key_dim=3)),
    "local, rotary": related(ByKeys, Local, 4, layers.RotaryEmbedding()),
    "local, relative": related(ByKeys, Local, 3, layers.RelativePositionBias(2)),
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
    "mixture": Inside(partial(layers.SynthesizerMixture, 2, 3, 15, members=MEMBERS)),
    "LSH": ByKeys(partial(layers.LSHAttention, 2, 3, num_buckets=4, chunk_length=4, seed=1)),
    "Longformer": ByKeys(
        partial(layers.LongformerAttention, 2, 3, sliding_window=3, global_length=2),
        causal=False,
        steps=False,
        averages=False,
    ),
    "Longformer, dilated": ByKeys(
        partial(layers.LongformerAttention, 2, 3, sliding_window=3, dilation=[1, 3]),
        causal=False,
        steps=False,
        averages=False,
    ),
    "BigBird": ByKeys(
        partial(layers.BigBirdAttention, 2, 3, block_length=3, num_random_blocks=2, seed=1),
        causal=False,
        steps=False,
    ),
    "sparse, strided": ByKeys(partial(layers.SparseAttention, 2, 3, stride=3)),
    "sparse, fixed": ByKeys(
        partial(layers.SparseAttention, 2, 3, stride=4, pattern="fixed", summary_length=2)
    ),
    "Linformer": Mechanism(
        partial(layers.LinformerAttention, 2, 3, max_length=150, projected_length=5),
        pairs=False,
        scores=False,
        causal=False,
        steps=False,
        averages=False,
    ),
    "Nystrom": ByKeys(
        partial(layers.NystromAttention, 2, 3, num_landmarks=3, convolution_width=3),
        causal=False,
        steps=False,
        averages=False,
    ),
    "Sinkhorn": ByKeys(
        partial(layers.SinkhornAttention, 2, 3, block_length=4, max_length=150),
        causal=False,
        steps=False,
    ),
    "linear": Mechanism(partial(layers.LinearAttention, 2, 3), pairs=False, scores=False),
    "linear, rotary": related(
        ByKeys, partial(layers.LinearAttention, 2), 4, layers.RotaryEmbedding()
    ),
    "gated linear": ByKeys(partial(layers.GatedLinearAttention, 2, 3), averages=False),
    "delta rule": ByKeys(partial(layers.DeltaRuleAttention, 2, 3), averages=False),
    "delta rule, gated": ByKeys(
        partial(layers.DeltaRuleAttention, 2, 3, use_gate=True), averages=False
    ),
    "convolved, multi-head": Inside(
        partial(layers.ConvolvedAttention, MultiHead(3), 3), pairs=False, averages=False
    ),
    "convolved, delta rule": ByKeys(
        partial(layers.ConvolvedAttention, layers.DeltaRuleAttention(2, 3), 2), averages=False
    ),
    "Performer": Mechanism(
        partial(layers.PerformerAttention, 2, 3, seed=1), pairs=False, scores=False
    ),
    "Performer, rotary": related(
        ByKeys, partial(layers.PerformerAttention, 2, seed=1), 4, layers.RotaryEmbedding()
    ),
}
