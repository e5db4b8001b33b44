"""Reversible blocks, as in "Reformer": their inputs follow from their outputs."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.compatibility import (
    build_attention,
    require_self_attention,
    require_steps,
)
from keras_attn.layers.blocks.masked_block import MaskedBlock
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.layer_configs import copy_layer, require_template, serialize_layer
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.pure_call import mask_of, with_mask
from keras_attn.layers.recomputation import Rematerialized
from keras_attn.layers.seeds import separate_seed
from keras_attn.ops import masks
from keras_attn.validation import require_rate


class ReversibleBranch(Rematerialized, keras.layers.Layer):
    """Normalization, a part and dropout: what one stream adds to the other.

    Args:
        part: Layer to build the part from.
        is_attention: Whether the part is an attention layer, called with query and value.
        dropout: Fraction of the part's output to drop in training.
        epsilon: Added to the variance in the normalization.
        seed: Seed of the dropout.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    def __init__(self, part, is_attention, dropout, epsilon, seed, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        policy = {"dtype": self.dtype_policy}
        self.is_attention = is_attention
        self.norm = LayerNormalization(epsilon=epsilon, name="norm", **policy)
        self.part = copy_layer(part, "part", **policy)
        self.dropout = Dropout(dropout, seed=seed, name="dropout", **policy)

    def build(self, shape):
        self.norm.build(shape)
        if self.is_attention:
            build_attention(self.part, shape)
        else:
            self.part.build(shape)

    def call(self, inputs, attention_mask=None, training=None, use_causal_mask=False):
        x = self.norm(inputs)
        if self.is_attention:
            masks = {"attention_mask": attention_mask, "use_causal_mask": use_causal_mask}
            y = self.part(x, x, training=training, **masks)
        else:
            y = self.part(x, training=training)
        return self.dropout(y, training=training)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape


class TwoStreamLayer(MaskedBlock):
    """Branches called in turn, (first, second) -> (second, first + branch(second)).

    A subclass defines `branches`.

    Args:
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        first: Tensor (batch, length, features), of the compute dtype. A mask that Keras propagates
            with it is applied.
        second: Tensor (batch, length, features).
        padding_mask: Boolean (batch, length), `False` at padding; ANDed with the propagated mask.
        attention_mask: Boolean (length, length), (batch, length, length) or
            (batch, heads or 1, length, length), `True` where a position may attend to another. Both
            masks may hold 1 and 0 of any number type instead; other numbers are refused: by an
            error, or where a graph is traced by an output of NaN.
        training: Whether dropout is applied.
        use_causal_mask: Whether a position attends only to itself and those before it.
        mask: Mask (batch, length) that Keras, or a wrapper such as `TimeDistributed`, hands over.

    Returns:
        Both streams, of their shapes.
    """

    def branches(self, attention_mask=None, training=None, use_causal_mask=False) -> list:
        """The layers that change the streams in turn, each with a function that calls it."""
        raise NotImplementedError

    def call(
        self,
        first,
        second,
        padding_mask=None,
        attention_mask=None,
        training=None,
        use_causal_mask=False,
        mask=None,
    ):
        first, attention_mask = self._read(first, mask, padding_mask, attention_mask)
        mask = mask_of(first)
        second, _ = self._read(second, mask, padding_mask)
        branches = self.branches(attention_mask, training, use_causal_mask)
        return self._through(branches, first, second, mask, training)

    def _through(self, branches, first, second, mask, training):
        for _, branch in branches:
            first, second = second, ops.add(first, branch(with_mask(second, mask)))
        return first, second

    def compute_mask(self, first, previous_mask):
        return previous_mask, previous_mask

    def compute_output_spec(self, first, second, *masks, **options):
        return tuple(keras.KerasTensor(first.shape, self.compute_dtype) for _ in range(2))


@keras.saving.register_keras_serializable(package="keras_attn")
class ReversibleBlock(TwoStreamLayer):
    """Self-attention and a feed-forward network over two streams, each adding to the other.

    `first + attention(norm(second))` and then `second + feed_forward(norm(first))`. From what comes
    out follows what went in (`inverse`), so that a `ReversibleStack` need not keep it.

    Args:
        attention: Attention layer to build the self-attention from.
        feed_forward: Layer to build the feed-forward network from.
        dropout: Fraction of each part's output to drop in training, in [0, 1).
        epsilon: Added to the variance in the normalizations.
        seed: Seed of the dropout, a whole number.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        UserError: `dropout` is outside [0, 1).

    Examples:
        >>> first, second = np.ones((2, 2, 5, 8), "float32")
        >>> block = ReversibleBlock(MultiHeadAttention(2, 4), FeedForward(32))
        >>> [stream.shape for stream in block(first, second)]
        [(2, 5, 8), (2, 5, 8)]

    References:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 3, equation 9.
        Gomez et al., 2017, https://arxiv.org/abs/1707.04585.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feed_forward: keras.layers.Layer,
        dropout: float = 0.0,
        epsilon: float = 1e-6,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_rate(dropout=dropout)
        require_self_attention("attention", attention)
        require_template("attention", attention)
        require_template("feed_forward", feed_forward)
        self.dropout = dropout
        self.epsilon = epsilon
        self.seed = seed
        branch = partial(
            ReversibleBranch, dropout=dropout, epsilon=epsilon, dtype=self.dtype_policy
        )
        self.attention = branch(attention, True, seed=seed, name="attention")
        self.feed_forward = branch(
            feed_forward, False, seed=separate_seed(seed, 1), name="feed_forward"
        )

    def build(self, first_shape, second_shape=None):
        self.attention.build(first_shape)
        self.feed_forward.build(first_shape)

    def branches(self, attention_mask=None, training=None, use_causal_mask=False) -> list:
        masks = {"attention_mask": attention_mask, "use_causal_mask": use_causal_mask}
        attend = partial(self.attention, training=training, **masks)
        feed = partial(self.feed_forward, training=training)
        return [(self.attention, attend), (self.feed_forward, feed)]

    def inverse(
        self, first, second, padding_mask=None, attention_mask=None, use_causal_mask=False
    ) -> tuple:
        """The inputs of a call without dropout, from its outputs and its masks."""
        attention_mask = masks.with_padding(attention_mask, padding_mask)
        branches = self.branches(attention_mask, False, use_causal_mask)
        for _, branch in reversed(branches):
            first, second = ops.subtract(second, branch(first)), first
        return first, second

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        """Makes the attention's empty cache of decoding (see the attention layer's own)."""
        attention = self.attention.part
        require_steps("attention", attention, "initial_cache", "attend_step")
        return attention.initial_cache(batch_size, max_length, beams)

    def decode_step(self, first, second, cache, index, ancestor_mask=None) -> tuple:
        """Runs the block on one new position, the earlier ones being cached.

        Args:
            first: Tensor (sources, beams, features), the position `index` of each hypothesis.
            second: Tensor (sources, beams, features).
            cache: The attention's cache.
            index: Position, int32: a scalar, or one for each row where the attention allows that.
            ancestor_mask: Which slots of the cache belong to which hypothesis, see the
                attention's `attend_step`.

        Returns:
            Both streams, and the cache with this position added.
        """
        attention = self.attention
        y, cache = attention.part.attend_step(attention.norm(second), cache, index, ancestor_mask)
        first = ops.add(first, y)
        return (first, ops.add(second, self.feed_forward(first))), cache

    def decode_prompt(self, first, second, cache, real) -> tuple:
        """Runs the block on a whole prompt, which the cache then holds.

        Args:
            first: Tensor (batch, length, features), positions 0, 1, 2, …
            second: Tensor (batch, length, features).
            cache: What `initial_cache` made.
            real: Boolean (batch, length), which positions the cache is to hold: the first ones of
                each sequence.

        Returns:
            Both streams, and the cache, in which step 0 follows the last position held.
        """
        attention = self.attention
        y, cache = attention.part.attend_prompt(attention.norm(second), cache, real)
        first = ops.add(first, y)
        return (first, ops.add(second, self.feed_forward(first))), cache

    def _argument(self, name):
        value = getattr(self, name)
        if isinstance(value, ReversibleBranch):
            return serialize_layer(value.part)
        return super()._argument(name)
