"""Pooling of sequences of vectors."""

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.ops import masks
from keras_attn.ops.attention import computing_dtype
from keras_attn.validation import require_one_of

_POOLINGS = ("mean", "max", "first")


@keras.saving.register_keras_serializable(package="keras_attn")
class SequencePooling(CompositeLayer):
    """Pools the vectors of a sequence over the positions that are no padding.

    Args:
        pooling: "mean" or "max" over the positions, or "first" for the vector at position 0.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        mask: Boolean (batch, length), `False` at padding; by default the mask that Keras
            propagates.

    Returns:
        Tensor (batch, features); 0 for a sequence of nothing but padding.

    Raises:
        UserError: `pooling` is none of the three.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SequencePooling("max")(x).shape
        (2, 8)
    """

    def __init__(self, pooling: str = "mean", **kwargs):
        super().__init__(**kwargs)
        require_one_of("pooling", pooling, _POOLINGS)
        self.pooling = pooling

    def call(self, inputs, mask=None):
        inputs = as_float(inputs, self.compute_dtype)
        mask, valid = masks.boolean_masks(mask=mask)
        return masks.unless_refused(self._pooled(inputs, mask), valid)

    def _pooled(self, inputs, mask):
        if inputs.shape[1] == 0:
            return ops.zeros((ops.shape(inputs)[0], inputs.shape[2]), inputs.dtype)
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2], dtype="bool")
        real = ops.expand_dims(mask, -1)  # (batch, length, 1)
        if self.pooling == "first":
            first = ops.where(real, inputs, ops.zeros((), inputs.dtype))[:, :1]
            return ops.sum(first, axis=1)  # 0 of an empty sequence
        dtype = computing_dtype(inputs.dtype)
        vectors = ops.cast(inputs, dtype)
        if self.pooling == "mean":
            total = ops.sum(ops.where(real, vectors, ops.zeros((), dtype)), axis=1)
            count = ops.sum(ops.cast(real, dtype), axis=1)
            return ops.cast(total / ops.maximum(count, 1.0), inputs.dtype)
        greatest = ops.max(
            ops.where(real, vectors, ops.cast(float("-inf"), dtype)), axis=1, initial=float("-inf")
        )
        greatest = ops.where(ops.any(real, axis=1), greatest, ops.zeros((), dtype))
        return ops.cast(greatest, inputs.dtype)

    def compute_mask(self, inputs, previous_mask):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[-1])
