"""Layer normalization as a layer."""

import keras

from keras_attn.layers.recomputation import Rematerialized
from keras_attn.ops.layer_norm import layer_norm


class LayerNormalization(Rematerialized, keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis, by `keras_attn.ops.layer_norm`.

    Args:
        epsilon: Added to the variance.
        **kwargs: Arguments of `keras.layers.LayerNormalization`.

    Call arguments:
        inputs: Float tensor (..., features).
        training: Whether the gradient's needs are kept.

    Returns:
        A tensor of the shape of the inputs.
    """

    def __init__(self, epsilon: float, **kwargs):
        super().__init__(epsilon=epsilon, **kwargs)

    def call(self, inputs, training=False):
        return layer_norm(inputs, self.gamma, self.beta, self.epsilon, training)
