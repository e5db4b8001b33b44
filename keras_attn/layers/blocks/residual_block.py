"""Base class of Transformer blocks: parts with a residual connection around each."""

from functools import partial
from typing import Any

import keras

from keras_attn.layers.blocks.masked_block import MaskedBlock
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.layer_configs import copy_layer, serialize_layer
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.recomputation import Rematerialized, recomputed
from keras_attn.layers.seeds import separate_seed
from keras_attn.validation import require, require_rate


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


class ResidualBlock(MaskedBlock):
    """A block of parts with residual connections, the last of them a feed-forward network.

    Args:
        dropout: Fraction of each part's output to drop in training, in [0, 1).
        norm_first: Whether each part's input is normalized (pre-norm) instead of the sum of input
            and output (post-norm).
        epsilon: Added to the variance in the normalizations.
        seed: Seed of the dropout, a whole number.
        recompute: Whether the backward pass computes the block again, so that training keeps the
            block's inputs in memory instead of everything inside.
        norm: Layer to build the normalizations from, such as `RMSNormalization`; a layer
            normalization with `epsilon` by default.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        norm_first: bool = False,
        epsilon: float = 1e-6,
        seed: int | None = None,
        recompute: bool = False,
        norm: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_rate(dropout=dropout)
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.seed = seed
        self.recompute = recompute
        self.has_own_norm = norm is not None
        # Not as attributes of their own, which Keras would take for parts of the block.
        self._connection = partial(
            ResidualConnection, norm_first, epsilon, dropout, norm=norm, dtype=self.dtype_policy
        )

    def _copy(self, part: str, template: keras.layers.Layer) -> keras.layers.Layer:
        return copy_layer(template, part, dtype=self.dtype_policy)

    def _residual(self, part: str, offset: int, **options: Any) -> ResidualConnection:
        seed = separate_seed(self.seed, offset)
        return self._connection(seed=seed, name=f"{part}_residual", **options)

    def _argument(self, name):
        if name != "norm":
            return super()._argument(name)
        return serialize_layer(self.feed_forward_residual.norm if self.has_own_norm else None)

    def _run(self, *tensors, training, **options):
        """Calls `_parts`, which the backward pass is to do again where the block says so."""
        parts = partial(self._parts, training=training, **options)
        return recomputed(self, parts, *tensors) if self.recompute and training else parts(*tensors)

    def _feed_forward(self, x, training=None):
        feed_forward = partial(self.feed_forward, training=training)
        return self.feed_forward_residual.around(x, feed_forward, training)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape
