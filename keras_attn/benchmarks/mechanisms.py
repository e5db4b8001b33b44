"""Attention mechanisms of benchmarks, with their theoretical costs."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

WIDTH = 512  # features
HEADS, KEY_DIM = 8, 64
WINDOW = 256  # positions a local query looks back, and ahead
RADIUS, GLOBALS = 84, 64  # as in ETC, whose long inputs have some tens of global positions
ROUNDS, CHUNK = 4, 64  # as in the Reformer's long models
SEGMENT = 512
RANDOM = 3  # random blocks, as in BigBird
MIXTURES, LANDMARKS = 256, 64
FEATURES = 267  # the default for heads of 64
BLOCK = 32  # of gated linear attention
RANK, UNITS = 8, 64
KEPT = 64  # earlier states that a recurrent cell attends to


class Measured(NamedTuple):
    """A mechanism, by the length n.

    Attributes:
        make: Makes the layer.
        operations: Multiplications plus additions of a forward pass over n positions.
        held: Size of the layer's largest tensor, such as its scores.
        causal: Whether it supports causal masking.
        recurrent: Whether it is a recurrent layer, which has one input and is causal.
    """

    make: Callable
    operations: Callable[[int], float]
    held: Callable[[int], float]
    causal: bool = True
    recurrent: bool = False


def make_layer(settings: dict[str, Any]) -> Any:
    """The layer that `settings["mechanism"]` names, for `settings["length"]` positions."""
    mechanism = MECHANISMS[settings["mechanism"]]
    layer = mechanism.make(settings["length"])
    shape = (1, settings["length"], settings["width"])
    layer.build(*([shape] if mechanism.recurrent else [shape, shape]))
    return layer


def call_layer(layer: Any, x: Any, settings: dict[str, Any]) -> Any:
    """Self-attention over x; with a memory, over consecutive segments."""
    from keras import ops

    if MECHANISMS[settings["mechanism"]].recurrent:
        return layer(x)
    options = {"use_causal_mask": True} if settings["causal"] else {}
    if not hasattr(layer, "initial_memory") or x.shape[1] <= SEGMENT:
        return layer(x, x, **options)
    memory, outputs = layer.initial_memory(1, x.shape[2]), []
    for segment in ops.split(x, range(SEGMENT, x.shape[1], SEGMENT), axis=1):
        output, memory = layer(segment, segment, memory=memory, **options)
        outputs.append(output)
    return ops.concatenate(outputs, axis=1)


def _layer(name: str, *given, **arguments) -> Callable:
    """Makes a layer from the length, which is given to arguments that are functions."""

    def make(length):
        from keras_attn import layers

        values = {
            key: value(length) if callable(value) else value for key, value in arguments.items()
        }
        return getattr(layers, name)(*given, **values)

    return make


def _headed(name: str, **arguments) -> Callable:
    return _layer(name, HEADS, KEY_DIM, **arguments)


def _recurrent(name: str, *given) -> Callable:
    def make(length):
        import keras

        return keras.layers.RNN(_layer(name, *given)(length), return_sequences=True)

    return make


def _projected(count: int, of_pairs: Callable) -> Callable:
    """Cost of `count` projections and of the operations between positions."""
    return lambda n: 2.0 * (count * n * WIDTH**2 + of_pairs(n))


def _products(n: int) -> float:
    """Scores and weighted values of all pairs of positions."""
    return 2 * n * n * WIDTH


def _all_pairs(n: int) -> float:
    return float(HEADS) * n * n


def _near(keys: int) -> Callable:
    return lambda n: float(HEADS) * n * min(keys, n)


def _buckets(length: int) -> int:
    return max(2, 2 * length // CHUNK // 2 * 2)


def _stride(length: int) -> int:
    return 2 ** round(math.log2(length) / 2)


def _synthesizer(name: str, count: int, of_pairs: Callable, **arguments) -> Measured:
    make = _headed(name, max_length=int, **arguments)  # the length itself
    return Measured(make, _projected(count, of_pairs), _all_pairs)


MECHANISMS = {
    "dense": Measured(
        _headed("MultiHeadAttention", flash_attention=False), _projected(4, _products), _all_pairs
    ),
    "flash": Measured(
        _headed("MultiHeadAttention", flash_attention=True), _projected(4, _products), _near(1)
    ),
    "local": Measured(
        _headed("LocalAttention", sliding_window=WINDOW + 1),
        _projected(4, lambda n: 2 * n * (2 * WINDOW + 1) * WIDTH),
        _near(3 * WINDOW),
    ),
    "global_local": Measured(
        _headed("GlobalLocalAttention", radius=RADIUS, global_length=GLOBALS),
        _projected(4, lambda n: 2 * n * (2 * RADIUS + 1 + 2 * GLOBALS) * WIDTH),
        _near(3 * RADIUS + 2 * GLOBALS),
        causal=False,
    ),
    "lsh": Measured(
        _headed("LSHAttention", num_buckets=_buckets, num_hashes=ROUNDS, chunk_length=CHUNK),
        _projected(3, lambda n: n * WIDTH * ROUNDS * (_buckets(n) / 2 + 2 * 2 * CHUNK)),
        _near(ROUNDS * 2 * CHUNK),
    ),
    "longformer": Measured(
        _headed("LongformerAttention", sliding_window=WINDOW + 1, global_length=GLOBALS),
        _projected(6, lambda n: 2 * n * (2 * WINDOW + 1 + 2 * GLOBALS) * WIDTH),
        _near(3 * WINDOW + 2 * GLOBALS),
        causal=False,
    ),
    "big_bird": Measured(
        _headed("BigBirdAttention", block_length=CHUNK, num_random_blocks=RANDOM),
        _projected(4, lambda n: 2 * n * (5 + RANDOM + 2) * CHUNK * WIDTH),
        _near((5 + RANDOM + 2) * CHUNK),
        causal=False,
    ),
    "sparse": Measured(
        _headed("SparseAttention", stride=_stride),
        _projected(4, lambda n: 2 * n * (2 * _stride(n) + n / _stride(n)) * WIDTH),
        lambda n: float(HEADS) * n * (3 * _stride(n) + n / _stride(n)),
    ),
    "sinkhorn": Measured(
        _headed("SinkhornAttention", block_length=CHUNK, max_length=int),
        _projected(4, lambda n: (2 * 2 * n * CHUNK + 2 * n * n / CHUNK) * WIDTH),
        _near(2 * CHUNK),
        causal=False,
    ),
    "linformer": Measured(
        _headed("LinformerAttention", max_length=int, projected_length=MIXTURES),
        _projected(4, lambda n: 4 * n * MIXTURES * WIDTH),
        _near(MIXTURES),
        causal=False,
    ),
    "nystrom": Measured(
        _headed("NystromAttention", num_landmarks=LANDMARKS, convolution_width=33),
        _projected(4, lambda n: n * (6 * LANDMARKS + 33) * WIDTH),
        _near(LANDMARKS),
        causal=False,
    ),
    "performer": Measured(
        _headed("PerformerAttention", num_features=FEATURES),
        _projected(4, lambda n: 4 * n * FEATURES * WIDTH),
        _near(FEATURES),
    ),
    "gated_linear": Measured(
        _headed("GatedLinearAttention"),
        _projected(5, lambda n: 2 * n * (KEY_DIM + BLOCK) * WIDTH),
        _near(KEY_DIM * KEY_DIM // BLOCK),
    ),
    "disentangled": Measured(
        _headed("DisentangledAttention"),
        _projected(4, lambda n: 12 * n * n * WIDTH),
        lambda n: n * n,
    ),
    "delta_rule": Measured(
        _headed("DeltaRuleAttention"),
        _projected(4, lambda n: 8 * n * KEY_DIM * WIDTH),
        _near(2 * KEY_DIM),
    ),
    "linear": Measured(
        _headed("LinearAttention"), _projected(4, lambda n: 2 * n * KEY_DIM * WIDTH), _near(KEY_DIM)
    ),
    "recurrent_memory": Measured(
        _headed("RecurrentMemoryAttention", memory_length=SEGMENT),
        _projected(4, lambda n: 4 * n * 2 * SEGMENT * WIDTH),
        _near(2 * SEGMENT),
    ),
    "compressive_memory": Measured(
        _headed("CompressiveMemoryAttention", memory_length=SEGMENT, compressed_length=SEGMENT),
        _projected(5, lambda n: 4 * n * 3 * SEGMENT * WIDTH),
        _near(3 * SEGMENT),
    ),
    "dense_synthesizer": _synthesizer("DenseSynthesizer", 3, _products),
    "factorized_dense_synthesizer": _synthesizer(
        "FactorizedDenseSynthesizer", 3, lambda n: n * n * WIDTH
    ),
    "random_synthesizer": _synthesizer("RandomSynthesizer", 2, lambda n: n * n * WIDTH),
    "factorized_random_synthesizer": _synthesizer(
        "FactorizedRandomSynthesizer", 2, lambda n: n * n * (WIDTH + HEADS * RANK), rank=RANK
    ),
    "synthesizer_mixture": _synthesizer("SynthesizerMixture", 4, _products),
    "simple": Measured(_layer("SimpleSelfAttention"), _projected(0, _products), lambda n: n * n),
    "additive": Measured(
        _layer("AdditiveAttention", UNITS),
        _projected(0, lambda n: 2 * n * WIDTH * UNITS + n * n * (UNITS + WIDTH)),
        lambda n: n * n,
    ),
    "luong": Measured(
        _layer("LuongAttention", "general"), _projected(1, _products), lambda n: n * n
    ),
    "intra": Measured(
        _recurrent("IntraAttentionCell", WIDTH, KEPT),
        _projected(10 + KEPT, lambda n: 3 * n * KEPT * WIDTH),
        lambda n: 2 * n * KEPT * WIDTH,
        recurrent=True,
    ),
}
