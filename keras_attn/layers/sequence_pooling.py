"""Pooling of sequences of vectors."""

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.ops import masks
from keras_attn.ops.attention import computing_dtype
from keras_attn.validation import require_one_of


def _mean(vectors, real):
    total = ops.sum(ops.where(real, vectors, ops.zeros((), vectors.dtype)), axis=1)
    return total / ops.maximum(ops.sum(ops.cast(real, vectors.dtype), axis=1), 1.0)


def _max(vectors, real):
    lowest = ops.cast(float("-inf"), vectors.dtype)
    greatest = ops.max(ops.where(real, vectors, lowest), axis=1, initial=float("-inf"))
    return ops.where(ops.any(real, axis=1), greatest, ops.zeros((), vectors.dtype))


def _first(vectors, real):
    first = ops.where(real[:, :1], vectors[:, :1], ops.zeros((), vectors.dtype))
    return ops.sum(first, axis=1)  # 0 of an empty sequence


_POOLS = {"mean": [_mean], "max": [_max], "mean_max": [_mean, _max], "first": [_first]}
POOLINGS = tuple(_POOLS)


@keras.saving.register_keras_serializable(package="keras_attn")
class SequencePooling(CompositeLayer):
    """Pools the vectors of a sequence over the positions that are no padding.

    Args:
        pooling: "mean" or "max" over the positions, "mean_max" for both, one after the other (of
            the concatenated pooling of Howard & Ruder 2018, section 3.3), or "first" for the vector
            at position 0.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        mask: Boolean (batch, length), `False` at padding; by default the mask that Keras
            propagates.

    Returns:
        Tensor (batch, features), of "mean_max" (batch, 2 · features); 0 for a sequence of nothing
        but padding.

    Raises:
        UserError: `pooling` is none of the four.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SequencePooling("max")(x).shape
        (2, 8)
    """

    def __init__(self, pooling: str = "mean", **kwargs):
        super().__init__(**kwargs)
        require_one_of("pooling", pooling, POOLINGS)
        self.pooling = pooling

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
        pooled = [pool(vectors, real) for pool in _POOLS[self.pooling]]
        return ops.cast(ops.concatenate(pooled, axis=-1), inputs.dtype)

    def _size(self, features):
        return len(_POOLS[self.pooling]) * features

    def compute_mask(self, inputs, previous_mask):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], self._size(input_shape[-1]))
