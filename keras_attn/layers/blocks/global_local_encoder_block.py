"""The encoder block of ETC: a long sequence, and a few global positions beside it."""

import keras

from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.blocks.block_inputs import mask_of_rows, read_block_inputs
from keras_attn.layers.blocks.residual_block import ResidualBlock
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class GlobalLocalEncoderBlock(ResidualBlock):
    """Global-local attention and a feed-forward network, for both sequences.

    The feed-forward network and the normalizations are one for both; whether the projections are
    decides the attention.

    Args:
        attention: `GlobalLocalAttention` to build the attention from.
        feed_forward: Layer to build the feed-forward network from.
        **kwargs: Arguments of `ResidualBlock`.

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

    fixed_arguments = ("recompute", "norm")

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require(
            isinstance(attention, GlobalLocalAttention),
            "`attention` must be a GlobalLocalAttention.",
            attention=type(attention).__name__,
        )
        self.attention = self._copy("attention", attention)
        self.feed_forward = self._copy("feed_forward", feed_forward)
        self.attention_residual = self._residual("attention", 0)
        self.feed_forward_residual = self._residual("feed_forward", 1)

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
        return tuple(
            self._feed_forward(self.attention_residual(x, y, training=training), training)
            for x, y in streams
        )

    def compute_mask(self, inputs, previous_mask):
        return previous_mask if isinstance(previous_mask, tuple) else (previous_mask, None)

    def compute_output_spec(self, inputs, global_inputs, *arguments, **options):
        return tuple(
            keras.KerasTensor(x.shape, self.compute_dtype) for x in (inputs, global_inputs)
        )
