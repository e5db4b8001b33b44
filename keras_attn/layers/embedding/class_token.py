"""A learned vector before a sequence, which represents the whole."""

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.hidden_positions import as_float


@keras.saving.register_keras_serializable(package="keras_attn")
class ClassToken(CompositeLayer):
    """Puts one learned vector before each sequence.

    Args:
        initializer: Initializer of the vector.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype. A mask that Keras
            propagates with it goes on, `True` for the vector.

    Returns:
        Tensor (batch, 1 + length, features).

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> ClassToken()(x).shape
        (2, 6, 8)

    References:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 3.
        Dosovitskiy et al., 2021, https://arxiv.org/abs/2010.11929, section 3.1, equation 1.
    """

    def __init__(self, initializer="zeros", **kwargs):
        super().__init__(**kwargs)
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape):
        self.vector = self.add_weight(
            name="vector", shape=(input_shape[-1],), initializer=self.initializer
        )

    def call(self, inputs):
        inputs = as_float(inputs, self.compute_dtype)
        shape = (ops.shape(inputs)[0], 1, self.vector.shape[0])
        first = ops.broadcast_to(ops.cast(self.vector, inputs.dtype), shape)
        return ops.concatenate([first, inputs], axis=1)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else ops.pad(mask, ((0, 0), (1, 0)), constant_values=True)

    def compute_output_shape(self, input_shape):
        batch, length, features = input_shape
        return (batch, None if length is None else 1 + length, features)
