"""The part of a head that comes before its output."""

import keras

from keras_attn.layers.activations import get_activation
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.dense import Dense
from keras_attn.layers.layer_normalization import LayerNormalization


@keras.saving.register_keras_serializable(package="keras_attn")
class HeadTransform(CompositeLayer):
    """A dense layer of the inputs' size with an activation, and a normalization.

    Args:
        activation: Activation of the dense layer.
        epsilon: Added to the variance in the normalization.
        use_bias: Whether the dense layer has a bias.
        norm_bias: Whether the normalization has one.
        kernel_initializer: Initializer of the kernel.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (..., features), of the compute dtype.
        training: Whether it is trained.

    Returns:
        A tensor of the shape of the inputs.

    Examples:
        >>> x = np.ones((2, 8), "float32")  # (batch, features)
        >>> HeadTransform()(x).shape
        (2, 8)

    Reference:
        Warner et al., 2024, https://arxiv.org/abs/2412.13663 (before classifiers).
    """

    def __init__(
        self,
        activation="gelu",
        epsilon: float = 1e-5,
        use_bias: bool = False,
        norm_bias: bool = False,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.activation = get_activation(activation)
        self.epsilon = epsilon
        self.use_bias = use_bias
        self.norm_bias = norm_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, input_shape):
        self.dense = Dense(
            input_shape[-1],
            activation=self.activation,
            use_bias=self.use_bias,
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build(input_shape)
        self.norm = LayerNormalization(
            self.epsilon, center=self.norm_bias, dtype=self.dtype_policy, name="norm"
        )
        self.norm.build(input_shape)

    def call(self, inputs, training=None):
        return self.norm(self.dense(inputs, training=training), training=training)

    def compute_output_shape(self, input_shape):
        return input_shape
