"""A dense layer."""

import keras

from keras_attn.layers.adaptable import Adaptable
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.ops.linear import linear


class Dense(Adaptable, Rematerialized, keras.layers.Dense):
    """`keras.layers.Dense` computed by `keras_attn.ops.linear`, which is faster on a CPU.

    Args:
        units: Number of outputs.
        **kwargs: Arguments of `keras.layers.Dense`.

    Call arguments:
        inputs: Float tensor (..., features).
        training: Whether there are many rows, and a gradient is asked for.

    Returns:
        Tensor (..., units).
    """

    def call(self, inputs, training=None):
        return linear(inputs, self.kernel, self.bias, self.activation, training)


def built_dense(features: int, units: int, **options) -> Dense:
    """Makes a dense layer without a bias, built for vectors of a size.

    Args:
        features: Size of the vectors.
        units: Size of the outputs.
        **options: Further arguments of `Dense`.
    """
    dense = Dense(units, use_bias=False, **options)
    dense.build((None, features))
    return dense
