"""Time of `MultiHeadAttention` beside the layer of Keras that it replaces.

Implements `keras-attn benchmark beside_keras`, on the backend of KERAS_BACKEND, which `--backend`
sets.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.benchmarks.growth import markdown
from keras_attn.benchmarks.layer_call import prepared_call
from keras_attn.layers import MultiHeadAttention
from keras_attn.validation import require, require_positive

SHAPES = ((32, 128, 512, 8), (8, 512, 512, 8), (2, 2048, 512, 8), (64, 32, 256, 4))
"""Rows, length, features and heads."""

OPTIONS = ("plain", "padding", "causal")


def measure_beside_keras(
    shapes: Sequence[tuple[int, int, int, int]] = SHAPES, rounds: int = 7, jit: bool = False
) -> Iterator[dict[str, Any]]:
    """Calls both layers in turn, compiled, with self-attention over random vectors.

    Args:
        shapes: Rows, length, features and heads of each measurement.
        rounds: Timed calls of each, after one to warm up.
        jit: Whether XLA compiles, as it always does on JAX.

    Yields:
        A dict with `shape`, `options` (see `OPTIONS`; "padding" masks the last quarter of every
        other row), `backward` (whether gradients are computed too), `seconds` and `keras_seconds`
        (medians), and `speed`, their ratio: above 1 where the layer of this package is faster.

    Raises:
        UserError: `rounds` or a number of a shape is not positive, or features cannot be divided
            among heads.
    """
    require_positive(rounds=rounds)
    for rows, length, features, heads in shapes:
        require_positive(rows=rows, length=length, features=features, heads=heads)
        require(
            features % heads == 0,
            "Features must be divisible by heads.",
            features=features,
            heads=heads,
        )
    for rows, length, features, heads in shapes:
        rng = np.random.default_rng(1)
        shape = (rows, length, features)
        x, upstream = (rng.standard_normal(shape, dtype="float32") for _ in range(2))
        real = np.ones((rows, length), bool)
        real[::2, 3 * length // 4 :] = False
        real = keras.ops.convert_to_tensor(real)
        for options in OPTIONS:
            calls = {
                "padding": {"query_mask": real, "value_mask": real},
                "causal": {"use_causal_mask": True},
            }.get(options, {})
            for backward in (False, True):
                settings = {"jit": jit, "backward": backward}
                timed = []
                for kind in (MultiHeadAttention, keras.layers.MultiHeadAttention):
                    layer = kind(heads, features // heads)
                    layer.build(shape, shape)
                    timed.append(_prepared(layer, calls, x, upstream, settings))
                ours, theirs = _in_turn(timed, rounds)
                yield {
                    "shape": list(shape),
                    "heads": heads,
                    "options": options,
                    "backward": backward,
                    "seconds": ours,
                    "keras_seconds": theirs,
                    "speed": theirs / ours,
                }


def _prepared(layer: Any, calls: dict, x: Any, upstream: Any, settings: dict) -> Any:
    return prepared_call(layer, lambda x: layer(x, x, **calls), x, upstream, settings)


def _in_turn(calls: Sequence[Any], rounds: int) -> list[float]:
    """The median seconds of calls that are made one after the other."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for call, of_call in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            of_call.append(time.perf_counter() - start)
    return [statistics.median(of_call[1:]) for of_call in seconds]


def beside_keras_table(figures: Sequence[dict[str, Any]]) -> str:
    """Makes a Markdown table of milliseconds forward, and with gradients, and of the speeds.

    Args:
        figures: The results of `measure_beside_keras`.
    """
    of_each = ("Keras", "speed")
    rows = [["rows, length, features", "call", "forward, ms", *of_each, "gradients, ms", *of_each]]
    for forward, backward in zip(figures[::2], figures[1::2], strict=True):
        cells = [", ".join(map(str, forward["shape"])), forward["options"]]
        for one in (forward, backward):
            cells += [f"{1e3 * one['seconds']:.1f}", f"{1e3 * one['keras_seconds']:.1f}"]
            cells.append(f"{one['speed']:.2f}")
        rows.append(cells)
    return markdown(rows)
