"""Operations of a training step's matrix products, and the peak speed of such products."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attn.benchmarks.timing import seconds_of_runs
from keras_attn.models import Transformer

REPEATS = 5
IN_A_ROW = 4


def matrix_operations(model: Transformer, rows: int, source: int, target: int) -> int:
    """Counts the floating-point operations of a step's matrix products, including attention.

    A multiplication and an addition count as two; the backward pass has twice the operations of the
    forward pass.

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
    """Measures floating-point operations per second of large products, the fastest of several.

    Args:
        dtype: Dtype of the matrices.
        size: Number of their rows and columns.
    """
    matrix = keras.random.normal((size, size), dtype=dtype)

    def multiply():
        # All runs are queued on an accelerator before waiting for them.
        for _ in range(IN_A_ROW):
            product = ops.matmul(matrix, matrix)
        ops.convert_to_numpy(product[0, 0])

    return IN_A_ROW * 2 * size**3 / fastest(multiply)


def fastest(step: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    return min(seconds_of_runs(step, REPEATS))
