"""The encoder block of the Transformer."""

from functools import partial

import keras

from keras_attn.layers.attention.compatibility import build_self_attention, require_self_attention
from keras_attn.layers.blocks.block_inputs import read_block_inputs
from keras_attn.layers.blocks.residual_connection import ResidualConnection
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.layer_configs import copy_layer, deserialize_layers, serialize_layer
from keras_attn.layers.recomputation import recomputed
from keras_attn.layers.seeds import separate_seed
from keras_attn.validation import require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerEncoderBlock(CompositeLayer):
    """Self-attention and a feed-forward network, each with a residual connection.

    The parts are given as layers, from whose configuration the block builds its own: any
    attention layer of this package, or one of yours with the same call, fits.

    Args:
        attention: Attention layer to build the self-attention from.
        feed_forward: Layer to build the feed-forward network from.
        dropout: Share of each part's output dropped in training, in [0, 1).
        norm_first: Whether each part's input is normalised (pre-norm) instead of the sum of input
            and output (post-norm, as in the paper).
        epsilon: Added to the variance in the normalisations.
        seed: Seed of the dropout, a whole number.
        recompute: Whether the backward pass computes the block again, so that training keeps the
            block's inputs in memory instead of everything inside.
        norm: Layer to build the normalisations from, such as `RMSNormalization`; a layer
            normalisation with `epsilon` by default.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype. A mask that Keras
            propagates with it is honoured.
        padding_mask: Boolean (batch, length), `False` at padding; ANDed with the propagated mask.
        attention_mask: Boolean (length, length), (batch, length, length) or
            (batch, heads or 1, length, length), `True` where a position may attend to another. Both
            masks may hold 1 and 0 of any number type instead; other numbers are refused: by an
            error, or where a graph is traced by an output of NaN.
        training: Whether dropout is applied.
        use_causal_mask: Whether a position attends only to itself and those before it.
        mask: Mask (batch, length) that Keras, or a wrapper such as `TimeDistributed`, hands over.

    Returns:
        A tensor of the shape of the inputs.

    Raises:
        UserError: `dropout` is outside [0, 1).

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
        Xiong et al., 2020, https://arxiv.org/abs/2002.04745 (pre-norm).
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
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
        require_self_attention("attention", attention)
        self.supports_masking = True
        policy = {"dtype": self.dtype_policy}
        self.attention = copy_layer(attention, "attention", **policy)
        self.feed_forward = copy_layer(feed_forward, "feed_forward", **policy)
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.seed = seed
        self.recompute = recompute
        self.has_own_norm = norm is not None
        residual = (norm_first, epsilon, dropout)
        self.attention_residual = ResidualConnection(
            *residual, seed=separate_seed(seed, 0), name="attention_residual", norm=norm, **policy
        )
        self.feed_forward_residual = ResidualConnection(
            *residual,
            seed=separate_seed(seed, 1),
            name="feed_forward_residual",
            norm=norm,
            **policy,
        )

    def build(self, input_shape):
        build_self_attention(self.attention, input_shape)
        self.feed_forward.build(input_shape)
        self.attention_residual.build(input_shape)
        self.feed_forward_residual.build(input_shape)

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=False,
        mask=None,
    ):
        inputs, attention_mask = read_block_inputs(
            self.compute_dtype, inputs, mask, padding_mask, attention_mask
        )
        parts = partial(
            self._parts,
            attention_mask=attention_mask,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        return recomputed(self, parts, inputs) if self.recompute and training else parts(inputs)

    def _parts(self, inputs, attention_mask, training, use_causal_mask):
        x = self.attention_residual.before(inputs)
        y = self.attention(
            x,
            x,
            attention_mask=attention_mask,
            training=training,
            use_causal_mask=use_causal_mask,
        )
        x = self.attention_residual(inputs, y, training=training)
        y = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        return self.feed_forward_residual(x, y, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {
            "attention": serialize_layer(self.attention),
            "feed_forward": serialize_layer(self.feed_forward),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "epsilon": self.epsilon,
            "seed": self.seed,
            "recompute": self.recompute,
            "norm": serialize_layer(self.feed_forward_residual.norm if self.has_own_norm else None),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**deserialize_layers(config, "attention", "feed_forward", "norm"))
