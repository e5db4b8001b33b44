"""Dropout as a layer."""

import keras

from keras_attn.layers.recomputation import Rematerialized
from keras_attn.ops.dropout import dropout


class Dropout(Rematerialized, keras.layers.Dropout):
    """`keras.layers.Dropout` computed by `keras_attn.ops.dropout`, which is faster on a CPU.

    Args:
        rate: Fraction of elements to set to zero in training, in [0, 1).
        seed: Seed of the random numbers, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor of any shape.
        training: Whether dropout is applied.

    Returns:
        A tensor of the shape of the inputs.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs, training=False):
        if not training or not self.rate:
            return inputs
        return dropout(inputs, self.rate, self.seed_generator)
