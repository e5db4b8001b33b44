"""Pooling of sequences of vectors."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.ops import masks
from keras_attn.ops.attention import computing_dtype
from keras_attn.validation import require, require_one_of


def _mean(vectors, real):
    total = ops.sum(ops.where(real, vectors, ops.zeros((), vectors.dtype)), axis=1)
    return total / ops.maximum(ops.sum(ops.cast(real, vectors.dtype), axis=1), 1.0)


def _max(vectors, real):
    lowest = ops.cast(float("-inf"), vectors.dtype)
    greatest = ops.max(ops.where(real, vectors, lowest), axis=1, initial=float("-inf"))
    return ops.where(ops.any(real, axis=1), greatest, ops.zeros((), vectors.dtype))


def _first(vectors, real, place=0):
    own = slice(place, place + 1)
    first = ops.where(real[:, own], vectors[:, own], ops.zeros((), vectors.dtype))
    return ops.sum(first, axis=1)  # 0 of a shorter sequence


def _second(vectors, real):
    return _first(vectors, real, 1)


def _mean_sqrt(vectors, real):
    return _mean(vectors, real) * ops.sqrt(ops.sum(ops.cast(real, vectors.dtype), axis=1))


def _weighted_mean(vectors, real):
    places = ops.expand_dims(ops.arange(1, ops.shape(vectors)[1] + 1, dtype=vectors.dtype), -1)
    weights = ops.where(real, places, ops.zeros((), vectors.dtype))  # (batch, length, 1)
    vectors = ops.where(real, vectors, ops.zeros((), vectors.dtype))
    total = ops.sum(vectors * weights, axis=1)
    return total / ops.maximum(ops.sum(weights, axis=1), 1.0)


def _last(vectors, real):
    following = ops.flip(ops.cumsum(ops.cast(ops.flip(real, 1), "int32"), axis=1), 1)
    is_last = ops.logical_and(real, following == 1)
    return ops.sum(ops.where(is_last, vectors, ops.zeros((), vectors.dtype)), axis=1)


_POOLS = {
    "mean": [_mean],
    "max": [_max],
    "mean_max": [_mean, _max],
    "first": [_first],
    "first_two": [_first, _second],
    "last": [_last],
    "mean_sqrt": [_mean_sqrt],
    "weighted_mean": [_weighted_mean],
}
POOLINGS = tuple(_POOLS)


def require_poolings(pooling: str | Sequence[str], others: Sequence[str] = ()) -> None:
    """Raises unless there is such a pooling.

    Args:
        pooling: The name of one, or a list of several.
        others: Further names, which cannot be in a list.

    Raises:
        UserError: There is none of that name, or the list is empty.
    """
    if isinstance(pooling, str):
        require_one_of("pooling", pooling, (*POOLINGS, *others))
        return
    require(bool(pooling), "`pooling` must name at least one.", pooling=pooling)
    for name in pooling:
        require_one_of("pooling", name, POOLINGS)


@keras.saving.register_keras_serializable(package="keras_attn")
class SequencePooling(CompositeLayer):
    """Pools the vectors of a sequence over the positions that are no padding.

    Args:
        pooling: "mean" or "max" over the positions, "mean_max" for both, one after the other (of
            the concatenated pooling of Howard & Ruder 2018, section 3.3), "first" for the vector at
            position 0, "first_two" for those at 0 and 1 (DeiT's tokens), "last" for that at the
            last position that is no padding, "mean_sqrt" for the sum divided by the square root of
            the number of positions, "weighted_mean" for a mean in which position i counts i + 1
            times; or a list of several, one after the other.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        mask: Boolean (batch, length), `False` at padding; by default the mask that Keras
            propagates.

    Returns:
        Tensor (batch, features), of "mean_max" and other pairs (batch, 2 · features); 0 for a
        sequence of nothing but padding.

    Raises:
        UserError: There is no such `pooling`.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SequencePooling("max")(x).shape
        (2, 8)
    """

    def __init__(self, pooling: str | Sequence[str] = "mean", **kwargs):
        super().__init__(**kwargs)
        require_poolings(pooling)
        self.pooling = pooling if isinstance(pooling, str) else list(pooling)

    def call(self, inputs, mask=None):
        inputs = as_float(inputs, self.compute_dtype)
        mask, valid = masks.boolean_masks(mask=mask)
        return masks.unless_refused(self._pooled(inputs, mask), valid)

    def _pooled(self, inputs, mask):
        if inputs.shape[1] == 0:
            return ops.zeros((ops.shape(inputs)[0], self._size(inputs.shape[2])), inputs.dtype)
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        real = ops.expand_dims(mask, -1)  # (batch, length, 1)
        vectors = ops.cast(inputs, computing_dtype(inputs.dtype))
        pooled = [pool(vectors, real) for pool in self._pools()]
        return ops.cast(ops.concatenate(pooled, axis=-1), inputs.dtype)

    def _size(self, features):
        return len(self._pools()) * features

    def _pools(self):
        names = [self.pooling] if isinstance(self.pooling, str) else self.pooling
        return [pool for name in names for pool in _POOLS[name]]

    def compute_mask(self, inputs, previous_mask):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self._size(input_shape[-1]))
