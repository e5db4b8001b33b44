"""A dense layer."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.layers.adaptable import Adaptable
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.ops.integer_product import integer_product, values_now
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

    def _int8_call(self, inputs, training=None):
        if not self._has_constant_integers():
            return super()._int8_call(inputs, training)
        outputs = self._integer_product(inputs)
        return outputs if self.activation is None else self.activation(outputs)

    def _has_constant_integers(self) -> bool:
        if not super()._has_constant_integers():
            return False
        return isinstance(self.inputs_quantizer, keras.quantizers.AbsMaxQuantizer)

    def _integer_product(self, inputs: Any, columns: np.ndarray | slice = slice(None)) -> Any:
        """Products with all or some columns of the kernel, the bias added."""
        weights = [self._kernel, self.kernel_scale, *([] if self.bias is None else [self.bias])]
        kernel, scale, *bias = (values[..., columns] for values in values_now(weights))
        outputs = integer_product(inputs, kernel, scale)
        return ops.add(outputs, ops.cast(bias[0], outputs.dtype)) if bias else outputs


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
