"""The residual connection around each part of a Transformer block."""

import keras

from keras_attn.layers.dropout import Dropout
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.validation import require


class ResidualConnection(Rematerialized, keras.layers.Layer):
    """Normalization, dropout and sum around one part of a block.

    Post-norm, as in the paper: `norm(x + dropout(part(x)))`.
    Pre-norm: `x + dropout(part(norm(x)))`.
    A block calls `around(x, part)`, or `before(x)`, its part, and then the layer itself on `x` and
    the part's output.

    Args:
        norm_first: Whether the input of the part is normalized instead of the sum.
        epsilon: Added to the variance in the normalization.
        dropout: Fraction of the part's output to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        norm: Layer to build the normalization from; a `LayerNormalization` by default.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        norm_first: bool,
        epsilon: float,
        dropout: float,
        seed: int | None = None,
        norm: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.norm_first = norm_first
        norm = norm or LayerNormalization(epsilon)
        self.norm = copy_layer(norm, "norm", dtype=self.dtype_policy)
        self.dropout = Dropout(dropout, seed=seed, dtype=self.dtype_policy, name="dropout")

    def build(self, inputs_shape, outputs_shape=None):
        self.norm.build(inputs_shape)

    def before(self, inputs):
        """What the part is to be given."""
        return self.norm(inputs) if self.norm_first else inputs

    def around(self, inputs, part, training=None):
        """Calls the part, a function of one tensor, and then the layer itself."""
        return self(inputs, part(self.before(inputs)), training=training)

    def call(self, inputs, outputs, training=None):
        require(
            None in (inputs.shape[-1], outputs.shape[-1]) or inputs.shape[-1] == outputs.shape[-1],
            "A part must give back the features that it is given.",
            given=inputs.shape[-1],
            given_back=outputs.shape[-1],
        )
        total = inputs + self.dropout(outputs, training=training)
        return total if self.norm_first else self.norm(total)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return inputs_shape
