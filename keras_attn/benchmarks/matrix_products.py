"""Operations of the matrix products of a training step, and the fastest time possible."""

import time
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.models import Transformer

REPEATS = 5
IN_A_ROW = 4


def matrix_operations(model: Transformer, rows: int, source: int, target: int) -> int:
    """Floating-point operations of a step's matrix products, attention's own among them.

    Two for a product and its sum; the backward pass has twice those of the forward pass.

    Args:
        model: An encoder-decoder whose keys and values are as wide as the model.
        rows: Sequences of the batch.
        source: Length of the sources.
        target: Length of the targets.
    """
    config = model.get_config()
    width, layers = config["hidden_dim"], config["num_layers"]
    vocabulary = config["target_vocabulary_size"] or config["vocabulary_size"]
    feed_forward = 2 * width * config["intermediate_dim"]
    of_source = layers * (4 * width**2 + feed_forward + 2 * width * source)
    of_source += layers * 2 * width**2  # keys and values for the decoder
    of_target = layers * (6 * width**2 + feed_forward + 2 * width * (source + target))
    of_target += width * vocabulary
    return 2 * 3 * rows * (source * of_source + target * of_target)


def matrix_peak(dtype: str, size: int = 2048) -> float:
    """Floating-point operations a second of large products, the fastest of some.

    Args:
        dtype: Dtype of the matrices.
        size: Number of their rows and columns.
    """
    matrix = keras.random.normal((size, size), dtype=dtype)

    def multiply():
        # An accelerator is told of all before it is waited for.
        for _ in range(IN_A_ROW):
            product = ops.matmul(matrix, matrix)
        ops.convert_to_numpy(product[0, 0])

    return IN_A_ROW * 2 * size**3 / fastest(multiply)


def fastest(step: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
