"""The encoder block of the Transformer."""

import keras

from keras_attn.layers.attention.compatibility import build_attention, require_self_attention
from keras_attn.layers.blocks.residual_block import ResidualBlock
from keras_attn.layers.layer_configs import require_template, serialize_layer


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerEncoderBlock(ResidualBlock):
    """Self-attention and a feed-forward network, each with a residual connection.

    The parts are given as layers, from whose configuration the block builds its own: any
    attention layer of this package, or one of yours with the same call, fits.

    Args:
        attention: Attention layer to build the self-attention from.
        feed_forward: Layer to build the feed-forward network from.
        attention_norm: Layer to build the normalization of the attention from, where it is not that
            of the block, such as `keras.layers.Activation("linear")`.
        **kwargs: Arguments of `ResidualBlock`.

    Call arguments:
        inputs: Tensor (batch, length, features), of the compute dtype. A mask that Keras
            propagates with it is applied.
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

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> block = TransformerEncoderBlock(MultiHeadAttention(2, 4), FeedForward(32), dropout=0.1)
        >>> block(x).shape
        (2, 5, 8)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
        Xiong et al., 2020, https://arxiv.org/abs/2002.04745 (pre-norm).
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        *,
        attention_norm: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.has_attention_norm = attention_norm is not None
        require_self_attention("attention", attention)
        self.attention = self._copy("attention", attention)
        self.feed_forward = self._copy("feed_forward", feed_forward)
        if attention_norm is not None:
            require_template("attention_norm", attention_norm)
        own = {"norm": attention_norm} if self.has_attention_norm else {}
        self.attention_residual = self._residual("attention", 0, **own)
        self.feed_forward_residual = self._residual("feed_forward", 1)

    def _argument(self, name):
        if name != "attention_norm":
            return super()._argument(name)
        return serialize_layer(self.attention_residual.norm if self.has_attention_norm else None)

    def build(self, input_shape):
        build_attention(self.attention, input_shape)
        self._build_further(input_shape)

    def _build_further(self, input_shape):
        """Builds everything but the attention."""
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
        inputs, attention_mask = self._read(inputs, mask, padding_mask, attention_mask)
        masks = {"attention_mask": attention_mask, "use_causal_mask": use_causal_mask}
        return self._run(inputs, training=training, **masks)

    def _parts(self, inputs, training, **masks):
        x = self.attention_residual.around(
            inputs, lambda x: self.attention(x, x, training=training, **masks), training
        )
        return self._feed_forward(x, training)
