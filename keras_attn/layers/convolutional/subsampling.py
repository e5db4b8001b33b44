"""The front end of speech Transformers: strided convolutions over a sequence of features."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_attn.layers.activations import get_activation
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.dense import Dense
from keras_attn.layers.hidden_positions import without_hidden
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops import masks
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class ConvolutionalSubsampling(CompositeLayer):
    """Convolutions over time, one after the other, that shorten a sequence by their strides.

    An output is at every `stride`th input, which is in the middle of what it sees; n inputs
    give ⌈n / stride⌉ outputs. What is padding counts as zeros in every convolution, as what lies
    beyond the ends does, so that padding changes no real output.

    Args:
        hidden_dim: Number of outputs of each convolution.
        kernel_size: Number of positions that an output sees, odd.
        strides: The stride of each convolution; there are as many convolutions.
        activation: Activation after each convolution.
        kernel_initializer: Initializer of the kernels (kernel_size · features, hidden_dim).
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        mask: Boolean (batch, length), `False` at padding; by default the mask that Keras
            propagates.
        training: Whether a gradient is asked for.

    Returns:
        Tensor (batch, length / product of the strides, rounded up, hidden_dim). The mask that
        Keras propagated is subsampled alike.

    Raises:
        UserError: A size is not positive, `kernel_size` is even, or there is no stride.

    Examples:
        >>> sound = np.ones((2, 100, 80), "float32")  # (batch, frames, features)
        >>> ConvolutionalSubsampling(hidden_dim=16)(sound).shape
        (2, 25, 16)

    References:
        Dong et al., 2018, https://ieeexplore.ieee.org/document/8462506, section 3.2.
        Radford et al., 2022, https://arxiv.org/abs/2212.04356, section 2.2: `kernel_size=3` and
        `strides=(1, 2)`.
    """

    def __init__(
        self,
        hidden_dim: int,
        kernel_size: int = 3,
        strides: Sequence[int] = (2, 2),
        activation="gelu",
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(hidden_dim=hidden_dim, kernel_size=kernel_size)
        require(kernel_size % 2 == 1, "`kernel_size` must be odd.", kernel_size=kernel_size)
        require(len(strides) > 0, "There must be at least one stride.", strides=strides)
        for stride in strides:
            require_positive(strides=stride)
        self.hidden_dim = hidden_dim
        self.kernel_size = kernel_size
        self.strides = list(strides)
        self.activation = get_activation(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.convolutions = [
            Dense(
                hidden_dim,
                activation=self.activation,
                kernel_initializer=separate_initializer(self.kernel_initializer, i),
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            for i in range(len(strides))
        ]

    def build(self, input_shape):
        features = input_shape[-1]
        for convolution in self.convolutions:
            convolution.build((*input_shape[:-1], self.kernel_size * features))
            features = self.hidden_dim

    def call(self, inputs, mask=None, training=None):
        mask, valid = masks.boolean_masks(mask=mask)
        inputs = masks.unless_refused(inputs, valid)
        x = inputs
        for convolution, stride in zip(self.convolutions, self.strides, strict=True):
            x = convolution(self._seen(without_hidden(x, mask), stride), training=training)
            mask = None if mask is None else mask[:, ::stride]
        return x

    def _seen(self, x, stride: int):
        """What each output sees, (batch, ⌈length / stride⌉, kernel_size · features)."""
        side = self.kernel_size // 2
        padded = ops.pad(x, ((0, 0), (side, side), (0, 0)))
        length = ops.shape(x)[1]
        places = [padded[:, i : i + length : stride] for i in range(self.kernel_size)]
        return ops.concatenate(places, axis=-1)

    def compute_mask(self, inputs, mask=None):
        if mask is not None:
            for stride in self.strides:
                mask = mask[:, ::stride]
        return mask

    def compute_output_shape(self, input_shape):
        length = input_shape[1]
        if length is not None:
            for stride in self.strides:
                length = -(-length // stride)  # rounded up
        return (input_shape[0], length, self.hidden_dim)
