"""Attaches a given mask to a tensor, so that Keras propagates it."""

import keras

from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.recomputation import Rematerialized


@keras.saving.register_keras_serializable(package="keras_attn")
class AttachedMask(Rematerialized, keras.layers.Layer):
    """Gives a sequence of vectors the mask that comes with it, and zeros where it is `False`.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Two tensors: vectors (batch, length, features), of the compute dtype, and a
            boolean mask (batch, length), `False` at padding.

    Returns:
        The vectors, with Keras' mask.
    """

    def call(self, inputs):
        vectors, mask = inputs
        return without_hidden(vectors, mask)

    def compute_mask(self, inputs, previous_mask=None):
        return inputs[1]

    def compute_output_shape(self, input_shape):
        return input_shape[0]
