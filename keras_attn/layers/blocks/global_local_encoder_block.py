"""The encoder block of ETC: a long sequence, and a few global positions beside it."""

import keras

from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.pure_call import mask_of
from keras_attn.ops.masks import combine_masks
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class GlobalLocalEncoderBlock(TransformerEncoderBlock):
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

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> units = np.ones((2, 1, 8), "float32")  # one global position
        >>> block = GlobalLocalEncoderBlock(GlobalLocalAttention(2, 4, radius=1), FeedForward(32))
        >>> [output.shape for output in block(x, units)]
        [(2, 5, 8), (2, 1, 8)]

    Reference:
        Ainslie et al., 2020, https://arxiv.org/abs/2004.08483, section 3.
    """

    fixed_arguments = ("recompute", "norm")

    def __init__(self, attention: keras.layers.Layer, feed_forward: keras.layers.Layer, **kwargs):
        require(
            isinstance(attention, GlobalLocalAttention),
            "`attention` must be a GlobalLocalAttention.",
            attention=type(attention).__name__,
        )
        super().__init__(attention, feed_forward, **kwargs)

    def build(self, inputs_shape, global_inputs_shape=None):
        self.attention.build(inputs_shape, global_query_shape=global_inputs_shape)
        self._build_further(inputs_shape)

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
        inputs, attention_mask = self._read(inputs, mask, padding_mask)
        global_inputs, global_mask = self._read(global_inputs, padding_mask=global_padding_mask)
        if global_mask is not None:  # else Keras hands over the mask that it propagates
            global_mask = combine_masks(mask_of(global_inputs), global_mask[:, 0])
        x, few = (self.attention_residual.before(y) for y in (inputs, global_inputs))
        attended = self.attention(
            x,
            x,
            attention_mask=attention_mask,
            global_query=few,
            global_query_mask=global_mask,
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
