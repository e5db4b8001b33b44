"""Windows of series on a scale of their own, with missing values as NaN."""

from typing import Any

from keras import ops

from keras_attn.tensors import Tensor

_CONSTANT = 1e-6
"""Standard deviation, as a part of the mean, below which a window counts as constant."""


def window_statistics(window: Tensor) -> tuple[Any, Any]:
    """Computes mean and standard deviation of the observed values of a window.

    Args:
        window: float (batch, steps, channels), NaN where a value is missing.

    Returns:
        Mean and standard deviation, float (batch, 1, channels). The deviation of a constant window
        is 0; both are NaN where no value is observed.

    Examples:
        >>> window = np.array([[[1.0], [np.nan], [3.0]]], "float32")
        >>> [float(value[0, 0, 0]) for value in window_statistics(window)]
        [2.0, 1.0]
    """
    observed = ~ops.isnan(window)
    count = ops.sum(ops.cast(observed, window.dtype), axis=1, keepdims=True)
    mean = ops.sum(ops.where(observed, window, 0), axis=1, keepdims=True) / count
    squares = ops.where(observed, ops.square(window - mean), 0)
    deviation = ops.sqrt(ops.sum(squares, axis=1, keepdims=True) / count)
    return mean, ops.where(deviation > _CONSTANT * ops.abs(mean), deviation, deviation * 0)


def standardized(window: Tensor, mean: Tensor, deviation: Tensor) -> tuple[Any, Any]:
    """Puts a window on the scale of its statistics.

    Args:
        window: float (batch, steps, channels), NaN where a value is missing.
        mean: float (batch, 1, channels).
        deviation: float (batch, 1, channels), 0 for a constant window.

    Returns:
        The values, 0 where one is missing, and 1 where one is observed, else 0; both float (batch,
        steps, channels).

    Examples:
        >>> window = np.array([[[1.0], [np.nan], [3.0]]], "float32")
        >>> values, observed = standardized(window, *window_statistics(window))
        >>> np.asarray(values)[0, :, 0].tolist(), np.asarray(observed)[0, :, 0].tolist()
        ([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0])

    Reference:
        Kim et al., 2022, Reversible Instance Normalization,
        https://openreview.net/forum?id=cGDAkQo1C0p, equation 1, without its learned scale.
    """
    observed = ~ops.isnan(window)
    values = (window - mean) / ops.where(deviation > 0, deviation, 1)
    return ops.where(observed, values, 0), ops.cast(observed, window.dtype)


def patches(steps: Tensor, patch_length: int) -> Any:
    """Groups the steps of a sequence whose length is known, the last step at the end of a patch.

    Args:
        steps: (batch, steps, features).
        patch_length: Number of steps of a patch, which need not divide their number: zeros are put
            before the first step.

    Returns:
        (batch, patches, patch_length · features).

    Examples:
        >>> patches(np.array([[[1], [2], [3]]]), 2)
        <tf.Tensor: shape=(1, 2, 2), dtype=int64, numpy=
        array([[[0, 1],
                [2, 3]]])>
    """
    length, features = steps.shape[1:]
    count = -(-length // patch_length)
    padded = ops.pad(steps, [[0, 0], [count * patch_length - length, 0], [0, 0]])
    return ops.reshape(padded, (-1, count, patch_length * features))
