"""Normalization by the root mean square as a layer that hands masks on."""

import keras

from keras_attn.layers.configuration import ConfiguredLayer
from keras_attn.layers.hidden_positions import as_float
from keras_attn.layers.recomputation import Rematerialized


@keras.saving.register_keras_serializable(package="keras_attn")
class RMSNormalization(ConfiguredLayer, Rematerialized, keras.layers.RMSNormalization):
    """`keras.layers.RMSNormalization` over the last axis, which propagates Keras' masks.

    Divides by the root of the mean square, computed in float32 at least, and multiplies by a
    learned scale. For blocks: `TransformerEncoderBlock(…, norm=RMSNormalization())`.

    Args:
        epsilon: Added to the mean square.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor (..., features).

    Returns:
        A tensor of the shape and dtype of the inputs.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> round(float(RMSNormalization()(3 * x)[0, 0, 0]), 3)
        1.0

    Reference:
        Zhang and Sennrich, 2019, https://arxiv.org/abs/1910.07467, equation 4.
    """

    fixed_arguments = ("axis",)

    def __init__(self, epsilon: float = 1e-6, **kwargs):
        super().__init__(epsilon=epsilon, **kwargs)
        self.supports_masking = True

    def call(self, inputs):
        inputs = as_float(inputs, self.compute_dtype)
        return super().call(inputs)
