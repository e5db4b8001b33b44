"""A number for each token, added to its logit."""

import keras
from keras import ops

from keras_attn.layers.hidden_positions import as_float
from keras_attn.layers.recomputation import Rematerialized


@keras.saving.register_keras_serializable(package="keras_attn")
class VocabularyBias(Rematerialized, keras.layers.Layer):
    """Adds a learned bias along the last axis, such as to logits of a tied embedding.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (…, vocabulary), of the compute dtype.

    Returns:
        A tensor of the same shape.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> VocabularyBias()(x).shape
        (2, 5, 8)
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        self.bias = self.add_weight(name="bias", shape=(input_shape[-1],), initializer="zeros")

    def call(self, inputs):
        inputs = as_float(inputs, self.compute_dtype)
        return ops.add(inputs, ops.cast(self.bias, inputs.dtype))

    def compute_output_shape(self, input_shape):
        return input_shape
