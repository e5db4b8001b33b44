"""The position-wise feed-forward network of a Transformer block."""

import keras
from keras import ops

from keras_attn.layers.activations import get_activation
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.dense import Dense
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.seeds import separate_initializer
from keras_attn.validation import require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class FeedForward(CompositeLayer):
    """Two dense layers with an activation between them, applied to each position.

    `activation(x W1 + b1) W2 + b2`, or gated `(activation(x W1) * x V) W2`.

    Args:
        intermediate_dim: Size between the two layers.
        activation: Activation between them, a name or a function: "relu" as in the paper,
            "gelu", "silu" …
        gated: Whether a linear projection of the input multiplies the activation (GLU; with
            "gelu" it is GEGLU, with "silu" SwiGLU).
        dropout: Fraction of the intermediate activations to drop in training, in [0, 1).
        use_bias: Whether the dense layers have biases.
        kernel_initializer: Initializer of the kernels.
        bias_initializer: Initializer of the biases.
        seed: Seed of the dropout, a whole number.
        output_initializer: Initializer of the second layer's kernel, where it is not
            `kernel_initializer`.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        training: Whether dropout is applied.

    Returns:
        A tensor of the shape of the inputs.

    Raises:
        UserError: `intermediate_dim` is not positive or `dropout` outside [0, 1).

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> FeedForward(32, activation="gelu")(x).shape
        (2, 5, 8)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.3.
        Shazeer, 2020, https://arxiv.org/abs/2002.05202 (gated variants).
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation="relu",
        gated: bool = False,
        dropout: float = 0.0,
        use_bias: bool = True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        seed: int | None = None,
        output_initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(intermediate_dim=intermediate_dim)
        require_rate(dropout=dropout)
        self.intermediate_dim = intermediate_dim
        self.activation = get_activation(activation)
        self.gated = gated
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed = seed
        self.output_initializer = keras.initializers.get(output_initializer)

    def build(self, input_shape):
        features, hidden = input_shape[-1], self.intermediate_dim
        of_inputs = self.kernel_initializer
        self.intermediate = self._dense(
            "intermediate", features, hidden, of_inputs, 0, self.activation
        )
        self.gate = None
        if self.gated:
            self.gate = self._dense("gate", features, hidden, of_inputs, 1)
        self.dropout_layer = Dropout(
            self.dropout, seed=self.seed, dtype=self.dtype_policy, name="dropout"
        )
        initializer = self.output_initializer or self.kernel_initializer
        self.output_projection = self._dense("output", hidden, features, initializer, 2)

    def call(self, inputs, training=None):
        x = self.intermediate(inputs, training=training)
        if self.gate is not None:
            x = ops.multiply(x, self.gate(inputs, training=training))
        x = self.dropout_layer(x, training=training)
        return self.output_projection(x, training=training)

    def _dense(self, name, features, units, initializer, offset, activation=None):
        dense = Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=separate_initializer(initializer, offset),
            bias_initializer=self.bias_initializer,
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, features))
        return dense

    def compute_output_shape(self, input_shape):
        return input_shape
