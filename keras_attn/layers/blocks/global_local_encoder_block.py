"""The encoder block of ETC: a long sequence, and a few global positions beside it."""

import keras

from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.blocks.block_inputs import mask_of_rows, read_block_inputs
from keras_attn.layers.blocks.residual_connection import ResidualConnection
from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.layer_configs import copy_layer, deserialize_layers, serialize_layer
from keras_attn.layers.seeds import separate_seed
from keras_attn.validation import require, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class GlobalLocalEncoderBlock(CompositeLayer):
    """Global-local attention and a feed-forward network, for both sequences.

    The feed-forward network and the normalisations are one for both; whether the projections are
    decides the attention.

    Args:
        attention: `GlobalLocalAttention` to build the attention from.
        feed_forward: Layer to build the feed-forward network from.
        dropout: Share of each part's output dropped in training, in [0, 1).
        norm_first: Whether each part's input is normalised (pre-norm) instead of the sum of input
            and output (post-norm, as in the paper).
        epsilon: Added to the variance in the normalisations.
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype.
        global_inputs: Tensor (batch, globals, features).
        padding_mask: Boolean (batch, length), `False` at padding.
        global_padding_mask: Boolean (batch, globals), `False` where there is no global position.
        labels: `GlobalLocalPieces` of int32 labels, as for the attention.
        pair_masks: `GlobalLocalPieces` of booleans, as for the attention.
        training: Whether dropout is applied.
        mask: Mask (batch, length) that Keras, or a wrapper such as `TimeDistributed`, hands over.

    Returns:
        Tensors (batch, length, features) and (batch, globals, features).

    Raises:
        UserError: `attention` is another layer, or `dropout` outside [0, 1).

    Reference:
        Ainslie et al., 2020, https://arxiv.org/abs/2004.08483, section 3.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        dropout: float = 0.0,
        norm_first: bool = False,
        epsilon: float = 1e-6,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_rate(dropout=dropout)
        require(
            isinstance(attention, GlobalLocalAttention),
            "`attention` must be a GlobalLocalAttention.",
            attention=type(attention).__name__,
        )
        self.supports_masking = True
        policy = {"dtype": self.dtype_policy}
        self.attention = copy_layer(attention, "attention", **policy)
        self.feed_forward = copy_layer(feed_forward, "feed_forward", **policy)
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.seed = seed
        residual = (norm_first, epsilon, dropout)
        self.attention_residual = ResidualConnection(
            *residual, seed=separate_seed(seed, 0), name="attention_residual", **policy
        )
        self.feed_forward_residual = ResidualConnection(
            *residual, seed=separate_seed(seed, 1), name="feed_forward_residual", **policy
        )

    def build(self, inputs_shape, global_inputs_shape=None):
        self.attention.build(inputs_shape, global_query_shape=global_inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.attention_residual.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)

    def call(
        self,
        inputs,
        global_inputs,
        padding_mask=None,
        global_padding_mask=None,
        labels=None,
        pair_masks=None,
        training=None,
        mask=None,
    ):
        inputs, attention_mask = read_block_inputs(self.compute_dtype, inputs, mask, padding_mask)
        global_inputs, global_mask = read_block_inputs(
            self.compute_dtype, global_inputs, None, global_padding_mask
        )
        x, few = (self.attention_residual.before(y) for y in (inputs, global_inputs))
        attended = self.attention(
            x,
            x,
            attention_mask=attention_mask,
            global_query=few,
            global_query_mask=mask_of_rows(global_inputs, global_mask),
            labels=labels,
            pair_masks=pair_masks,
            training=training,
        )
        streams = zip((inputs, global_inputs), attended, strict=True)
        return tuple(self._rest(x, y, training) for x, y in streams)

    def _rest(self, inputs, attended, training):
        x = self.attention_residual(inputs, attended, training=training)
        y = self.feed_forward(self.feed_forward_residual.before(x), training=training)
        return self.feed_forward_residual(x, y, training=training)

    def compute_mask(self, inputs, previous_mask):
        return previous_mask if isinstance(previous_mask, tuple) else (previous_mask, None)

    def compute_output_spec(self, inputs, global_inputs, *arguments, **options):
        return tuple(
            keras.KerasTensor(x.shape, self.compute_dtype) for x in (inputs, global_inputs)
        )

    def get_config(self):
        return super().get_config() | {
            "attention": serialize_layer(self.attention),
            "feed_forward": serialize_layer(self.feed_forward),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "epsilon": self.epsilon,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**deserialize_layers(config, "attention", "feed_forward"))
