"""Attention inside dilated windows and to global positions, as in "Longformer"."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops import masks
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.dilated_attention import dilated_attention
from keras_attn.ops.known_values import require_values
from keras_attn.ops.linear import with_leading_axes
from keras_attn.ops.local_attention import GlobalKeys
from keras_attn.tensors import Tensor
from keras_attn.validation import is_integer, require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LongformerAttention(BaseMultiHeadAttention):
    """Multi-head self-attention inside a window, which may have gaps, and to global positions.

    Every position attends to those nearby and to the global ones, in one softmax; global positions
    attend to everything, by queries, keys and values of projections of their own. Time and memory
    are linear in the length. Global positions are the first real ones, or those that a
    `global_mask` marks. They attend to everything: there is no causal form (`LocalAttention` has
    one). Masks hide keys from all queries alike.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        sliding_window: A query attends to keys less than this many places away: to
            `2 * sliding_window - 1` of them.
        global_length: Greatest number of global positions in a sequence.
        dilation: Distance of two places, a number or one for each head: 2 leaves out every other
            position.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        use_causal_mask: Must be `False`.
        global_mask: Boolean (batch, length), `True` at global positions, at most `global_length`
            in a row; by default the first `global_length` real positions are global.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, there are not as many dilations as heads, `dropout` is
            outside [0, 1), lengths differ, scores or a causal mask are asked for, an
            `attention_mask` differs between queries, or a `global_mask` marks too many positions
            (by NaN where XLA or JAX traces it).

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LongformerAttention(2, 4, sliding_window=2)(x, x).shape
        (2, 5, 8)

    Reference:
        Beltagy et al., 2020, https://arxiv.org/abs/2004.05150, sections 3.1 and 3.2.
    """

    can_be_causal = False
    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        sliding_window: int,
        global_length: int = 1,
        dilation: int | Sequence[int] = 1,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(sliding_window=sliding_window, global_length=global_length)
        for one in [dilation] if is_integer(dilation) else dilation:
            require_positive(dilation=one)
        require(
            is_integer(dilation) or len(dilation) == num_heads,
            "`dilation` must be a number or one for each head.",
            dilation=dilation,
            num_heads=num_heads,
        )
        self.sliding_window = sliding_window
        self.global_length = global_length
        self.dilation = dilation if is_integer(dilation) else list(dilation)
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        value_shape = query_shape if value_shape is None else value_shape
        # Their queries are projected apart, because they are few.
        self.global_projections = self._built_projections(
            (query_shape, value_shape, key_shape), first_seed=6, prefix="global_"
        )

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        global_mask=None,
    ):
        inputs = (query, value, key, query_mask, value_mask, key_mask, attention_mask)
        options = (return_attention_scores, training, use_causal_mask)
        return self._call_checked(inputs, *options, global_mask=global_mask)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask, global_mask):
        self._refuse_causal(use_causal_mask, "Global positions attend to everything")
        query, value, key = inputs.visible(self.compute_dtype)
        length = ops.shape(query)[1]
        mask = inputs.mask_of_keys()
        real = ops.ones((1, 1, length), "bool") if mask is None else mask
        places, valid = self._places(global_mask, mask, length)
        heads = self._project(query, value, key, training)
        few = ops.matmul(with_leading_axes(ops.cast(places, query.dtype), query), query)
        of_global = self._project(few, value, key, training, self.global_projections)
        apart = (of_global["query"], of_global["key"])
        attend = partial(self._attend_heads, heads, *apart, places, real)
        of_local = heads["value"]
        context = attend(of_local, of_global["value"], **self._dropping(training))
        pattern = {}
        if global_mask is None and self.dilation == 1:
            pattern = {"window": self.sliding_window, "globals": self.global_length}
        record_attention(
            self, attend, of_local, mask, query_mask=inputs.query_mask, pattern=pattern
        )
        output = self._project_back(masks.masked_queries(context, inputs.query_mask), training)
        return masks.unless_refused(output, valid)

    def _attend_heads(
        self, heads, global_query, global_key, places, real, value, global_value=None, **dropping
    ) -> Any:
        """The contexts (batch, heads, length, value_dim) of all positions.

        Args:
            heads: The heads of all positions by role.
            global_query: Queries of the global positions, (batch, heads, globals, key_dim).
            global_key: Keys of all positions for them.
            places: Boolean (batch or 1, globals, length), where each global position is.
            real: Boolean (batch or 1, heads or 1, length), `False` at keys that are masked.
            value: Values (batch, heads, length, value_dim).
            global_value: Values for the global positions; the same by default.
            **dropping: Arguments that drop attention probabilities.
        """
        global_value = value if global_value is None else global_value
        at_globals = with_leading_axes(ops.expand_dims(ops.cast(places, value.dtype), 1), value)
        is_global = ops.any(places, axis=1)  # (batch or 1, length)
        their_mask = ops.any(
            ops.logical_and(ops.expand_dims(places, 1), ops.expand_dims(real, 2)), axis=-1
        )
        globals_of_all = GlobalKeys(
            ops.matmul(at_globals, heads["key"]),
            ops.matmul(at_globals, value),
            ops.expand_dims(their_mask, 2),
        )
        dilations = [self.dilation] * self.num_heads if is_integer(self.dilation) else self.dilation
        context = dilated_attention(
            heads["query"],
            heads["key"],
            value,
            self.sliding_window,
            dilations,
            ops.logical_and(real, ops.logical_not(ops.expand_dims(is_global, 1))),
            globals_of_all,
            **dropping,
        )
        of_few = dot_product_attention(
            global_query, global_key, global_value, mask=ops.expand_dims(real, 2), **dropping
        )
        spread = ops.matmul(ops.swapaxes(at_globals, -1, -2), of_few)
        return ops.where(ops.expand_dims(is_global, (1, 3)), spread, context)

    def _places(self, global_mask: Tensor, real: Tensor, length: Any) -> tuple[Any, Any]:
        """Where each global position is, and whether there are not too many.

        Without a `global_mask` they are the first ones that are `real` for a head.

        Returns:
            Boolean (batch or 1, globals, length), and what `keras_attn.ops.masks.unless_refused`
            takes.
        """
        numbers = ops.expand_dims(ops.arange(self.global_length, dtype="int32"), 1)
        if global_mask is None:
            if real is None:
                return ops.equal(numbers, ops.arange(length, dtype="int32"))[None], None
            number = _numbered(ops.any(real, axis=1))
            return ops.equal(ops.expand_dims(number, 1), numbers), None
        global_mask, valid = masks.boolean_masks(global_mask=global_mask)
        number = _numbered(global_mask)
        greatest = ops.max(number, initial=-1) + 1
        expected = f"`global_mask` must not mark more than `global_length`={self.global_length}."
        fits = require_values(greatest <= self.global_length, expected, marked=greatest)
        return ops.equal(ops.expand_dims(number, 1), numbers), masks.combine_masks(valid, fits)


def _numbered(marked: Tensor) -> Any:
    """The number of each marked position among those of its row, from 0; -1 for the others."""
    number = ops.cumsum(ops.cast(marked, "int32"), axis=1) - 1
    return ops.where(marked, number, -1)
