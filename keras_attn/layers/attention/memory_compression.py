"""The compression functions of the Compressive Transformer."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.linear import linear
from keras_attn.ops.softmax import MASKED_SCORE


class MemoryCompression(Rematerialized, keras.layers.Layer):
    """Makes one state of every `rate` states; states left over at the end are dropped.

    Args:
        rate: Number of states that become one.
        kernel_initializer: Initializer of the kernels, for compressions that have some.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        states: Tensor (batch, length, features).
        real: Boolean (batch, length), `False` where there is no state.
        usage: Tensor (batch, length), the attention that each state received; `None` where
            `needs_usage` is False.

    Returns:
        Tensor (batch, length // rate, features), 0 where none of the states is real, and boolean
        (batch, length // rate), `False` there.
    """

    needs_usage = False

    def __init__(self, rate: int, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.kernel_initializer = kernel_initializer

    def call(self, states, real, usage=None):
        slots = ops.shape(states)[1] // self.rate
        states, real = (x[:, : slots * self.rate] for x in (states, real))
        groups = ops.reshape(real, (ops.shape(real)[0], slots, self.rate))
        there = ops.any(groups, axis=-1)
        compressed = self.compress(without_hidden(states, real), groups)
        return without_hidden(compressed, there), there

    def compress(self, states: Any, groups: Any) -> Any:
        """The compressed states (batch, slots, features).

        Args:
            states: Tensor (batch, slots * rate, features), 0 where there is no state.
            groups: Boolean (batch, slots, rate), `True` where there is a state.
        """
        raise NotImplementedError

    def _grouped(self, states):
        batch, length, features = ops.shape(states)
        return ops.reshape(states, (batch, length // self.rate, self.rate, features))


class MeanCompression(MemoryCompression):
    """The mean of the real states."""

    def compress(self, states, groups):
        count = ops.expand_dims(ops.sum(ops.cast(groups, states.dtype), axis=-1), -1)
        return ops.sum(self._grouped(states), axis=2) / ops.maximum(count, 1)


class MaxCompression(MemoryCompression):
    """The greatest value of each feature among the real states."""

    def compress(self, states, groups):
        dtype = computing_dtype(states.dtype)
        least, grouped = ops.cast(MASKED_SCORE, dtype), ops.cast(self._grouped(states), dtype)
        grouped = ops.where(ops.expand_dims(groups, -1), grouped, least)
        return ops.cast(ops.max(grouped, axis=2), states.dtype)


class ConvolutionCompression(MemoryCompression):
    """A convolution whose kernel and stride are the rate."""

    def build(self, shape, *_):
        self.convolution = self._convolution(shape, 0, strides=self.rate)
        self.input_spec = keras.layers.InputSpec(axes={-1: shape[-1]})

    def compress(self, states, groups):
        # A product of whole groups: TensorFlow's convolution of an empty batch has another length.
        groups = self._grouped(states)
        features = self.convolution.kernel.shape[1]
        groups = ops.reshape(groups, (*ops.shape(groups)[:2], self.rate * features))
        kernel = ops.reshape(self.convolution.kernel, (self.rate * features, -1))
        return linear(groups, ops.cast(kernel, groups.dtype), self.convolution.bias)

    def _convolution(self, shape, offset, **options):
        convolution = keras.layers.Conv1D(
            shape[-1],
            self.rate,
            kernel_initializer=separate_initializer(self.kernel_initializer, offset),
            dtype=self.dtype_policy,
            **options,
        )
        convolution.build((None, None, shape[-1]))
        return convolution


class DilatedConvolutionCompression(ConvolutionCompression):
    """Dilated convolutions, each added to what it reads, before the convolution that strides."""

    DILATIONS = (1, 2)

    def build(self, shape, *_):
        super().build(shape)
        self.dilated = [
            self._convolution(shape, i, dilation_rate=d, padding="same", activation="relu")
            for i, d in enumerate(self.DILATIONS, start=1)
        ]

    def compress(self, states, groups):
        for convolution in self.dilated:
            states = ops.add(states, convolution(states))
        return super().compress(states, groups)


class MostUsedCompression(MemoryCompression):
    """The states that were attended to most, in their order."""

    needs_usage = True

    def call(self, states, real, usage=None):
        slots = ops.shape(states)[1] // self.rate
        usage = ops.where(real, ops.cast(usage, "float32"), ops.cast(-1.0, "float32"))
        kept = ops.sort(ops.argsort(-usage, axis=1)[:, :slots], axis=1)
        states = ops.take_along_axis(without_hidden(states, real), kept[..., None], axis=1)
        return states, ops.take_along_axis(real, kept, axis=1)


COMPRESSIONS = {
    "mean": MeanCompression,
    "max": MaxCompression,
    "convolution": ConvolutionCompression,
    "dilated_convolution": DilatedConvolutionCompression,
    "most_used": MostUsedCompression,
}
