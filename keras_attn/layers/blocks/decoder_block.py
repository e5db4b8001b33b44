"""The decoder block of the Transformer."""

import keras

from keras_attn.layers.attention.compatibility import (
    build_attention,
    require_cross_attention,
    require_self_attention,
    require_steps,
)
from keras_attn.layers.blocks.residual_block import ResidualBlock
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerDecoderBlock(ResidualBlock):
    """Causal self-attention, attention to a source, and a feed-forward network.

    The parts are given as layers, from whose configuration the block builds its own. Without
    `cross_attention` it is the block of a decoder-only model.

    Args:
        self_attention: Attention layer to build the self-attention from.
        feed_forward: Layer to build the feed-forward network from.
        cross_attention: Attention layer to build the attention to the source from, or `None`.
        **kwargs: Arguments of `ResidualBlock`.

    Call arguments:
        inputs: Tensor (batch, target, features), of the compute dtype. Masks that Keras
            propagates with it and with `source` are applied.
        source: Tensor (batch, source, features), the encoder's output.
        padding_mask: Boolean (batch, target), `False` at padding of the inputs.
        source_padding_mask: Boolean (batch, source), `False` at padding of the source.
        attention_mask: Boolean (target, target), (batch, target, target) or
            (batch, heads or 1, target, target) for the self-attention, `True` where a position may
            attend to another. All masks may hold 1 and 0 of any number type instead; other numbers
            are refused: by an error, or where a graph is traced by an output of NaN.
        training: Whether dropout is applied.
        use_causal_mask: Whether a position attends only to itself and those before it.
        mask: Mask (batch, target) that Keras, or a wrapper such as `TimeDistributed`, hands over.

    Returns:
        A tensor of the shape of the inputs.

    Raises:
        UserError: `dropout` is outside [0, 1), a source is missing or not wanted, or decoding
            step by step is asked of an attention that has no such form.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> source = np.ones((2, 7, 8), "float32")
        >>> attention = MultiHeadAttention(2, 4)
        >>> block = TransformerDecoderBlock(attention, FeedForward(32), cross_attention=attention)
        >>> block(x, source).shape
        (2, 5, 8)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
        Xiong et al., 2020, https://arxiv.org/abs/2002.04745 (pre-norm).
    """

    def __init__(
        self,
        self_attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        cross_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_self_attention("self_attention", self_attention, is_causal=True)
        self.self_attention = self._copy("self_attention", self_attention)
        self.self_attention_residual = self._residual("self_attention", 0)
        self.cross_attention = None
        if cross_attention is not None:
            require_cross_attention("cross_attention", cross_attention)
            self.cross_attention = self._copy("cross_attention", cross_attention)
            self.cross_attention_residual = self._residual("cross_attention", 1)
        self.feed_forward = self._copy("feed_forward", feed_forward)
        self.feed_forward_residual = self._residual("feed_forward", 2)

    def build(self, inputs_shape, source_shape=None):
        self._require_source(source_shape is not None)
        build_attention(self.self_attention, inputs_shape)
        self.self_attention_residual.build(inputs_shape)
        if self.cross_attention is not None:
            build_attention(self.cross_attention, inputs_shape, source_shape)
            self.cross_attention_residual.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)

    def call(
        self,
        inputs,
        source=None,
        padding_mask=None,
        source_padding_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=True,
        mask=None,
    ):
        self._require_source(source is not None)
        inputs, attention_mask = self._read(inputs, mask, padding_mask, attention_mask)
        source, source_mask = self._read(source, padding_mask=source_padding_mask)
        tensors = (inputs,) if source is None else (inputs, source)
        masks = {"attention_mask": attention_mask, "use_causal_mask": use_causal_mask}
        return self._run(*tensors, training=training, source_mask=source_mask, **masks)

    def _parts(self, inputs, source=None, *, source_mask, training, **masks):
        x = self.self_attention_residual.around(
            inputs, lambda x: self.self_attention(x, x, training=training, **masks), training
        )
        if self.cross_attention is not None:
            options = {"attention_mask": source_mask, "training": training}
            x = self.cross_attention_residual.around(
                x, lambda x: self.cross_attention(x, source, **options), training
            )
        return self._feed_forward(x, training)

    def initial_cache(self, batch_size, max_length=None, beams=1):
        """Makes the empty self-attention cache of decoding (see the attention layer's own)."""
        steps = ("initial_cache", "attend_step")
        require_steps("self_attention", self.self_attention, *steps)
        return self.self_attention.initial_cache(batch_size, max_length, beams)

    def project_source(self, source, padding_mask=None) -> dict:
        """Projects the source once for all steps of decoding.

        Args:
            source: Tensor (batch, source, features), the encoder's output.
            padding_mask: Boolean (batch, source), `False` at padding of the source.

        Returns:
            The projected source, a dict of tensors with `batch` rows.
        """
        steps = ("project_source", "attend_source")
        require_steps("cross_attention", self.cross_attention, *steps)
        return self.cross_attention.project_source(source, value_mask=padding_mask)

    def decode_step(self, inputs, cache, index, source=None, ancestor_mask=None):
        """Runs the block on one new position, the earlier ones being cached.

        Args:
            inputs: Tensor (sources, beams, features), the position `index` of each hypothesis;
                (batch, 1, features) without a beam search.
            cache: The self-attention cache.
            index: Position, int32: a scalar, or one for each row where the self-attention
                allows that.
            source: What `project_source` returned.
            ancestor_mask: Which slots of the cache belong to which hypothesis, see the
                self-attention's `attend_step`.

        Returns:
            The output (sources, beams, features) and the cache with this position added.
        """
        x = self.self_attention_residual.before(inputs)
        y, cache = self.self_attention.attend_step(x, cache, index, ancestor_mask)
        return self._after_self_attention(inputs, y, source), cache

    def decode_prompt(self, inputs, cache, real, source=None):
        """Runs the block on a whole prompt, which the cache then holds.

        Args:
            inputs: Tensor (batch, length, features), positions 0, 1, 2, …
            cache: What `initial_cache` made.
            real: Boolean (batch, length), which positions the cache is to hold: the first ones of
                each sequence.
            source: What `project_source` returned.

        Returns:
            The output (batch, length, features), and the cache, in which step 0 follows the last
            position held.
        """
        require_steps("self_attention", self.self_attention, "attend_prompt")
        x = self.self_attention_residual.before(inputs)
        y, cache = self.self_attention.attend_prompt(x, cache, real)
        return self._after_self_attention(inputs, y, source), cache

    def _after_self_attention(self, inputs, attended, source):
        x = self.self_attention_residual(inputs, attended)
        if self.cross_attention is not None:
            x = self.cross_attention_residual.around(
                x, lambda x: self.cross_attention.attend_source(x, source)
            )
        return self._feed_forward(x)

    def _require_source(self, given: bool):
        require(
            given == (self.cross_attention is not None),
            "A `source` must be given exactly when the block has a `cross_attention`.",
            source_given=given,
            cross_attention=type(self.cross_attention).__name__ if self.cross_attention else None,
        )
