"""Strided and fixed patterns, as in "Generating Long Sequences with Sparse Transformers"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.decoding.cache import (
    continued,
    initial_cache,
    query_position,
    slot_positions,
    visible_slots,
)
from keras_attn.ops.strided_attention import strided_attention, strided_pairs
from keras_attn.validation import require, require_one_of, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class SparseAttention(DecodingSteps, BaseMultiHeadAttention):
    """Multi-head self-attention to what is near and to a subset of all positions, in two patterns.

    With the pattern "strided" a position attends to those less than `stride` away and to every
    `stride`-th one from it on; with "fixed" to its row of `stride` positions and to the last
    `summary_length` positions of every row. So all positions are two steps apart, and with a stride
    near the root of the length n time and memory grow with n √n. Each head attends to both parts in
    one softmax (the paper's merged heads). Masks hide keys from all queries alike, or the keys
    after a query (`use_causal_mask`).

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        stride: Length of a row.
        pattern: "strided", for data with a period such as images, or "fixed", for text.
        summary_length: Number of last positions of each row that all attend to, with "fixed".
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, the pattern is another, there are more summaries than
            positions in a row, `dropout` is outside [0, 1), lengths differ, scores are asked for,
            or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SparseAttention(2, 4, stride=2, pattern="fixed")(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    Reference:
        Child et al., 2019, https://arxiv.org/abs/1904.10509, sections 4.2, 4.3 and 5.2.
    """

    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        stride: int,
        pattern: str = "strided",
        summary_length: int = 1,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(stride=stride, summary_length=summary_length)
        require_one_of("pattern", pattern, ("strided", "fixed"))
        require(
            summary_length <= stride,
            "`summary_length` must not be greater than `stride`.",
            summary_length=summary_length,
            stride=stride,
        )
        self.stride = stride
        self.pattern = pattern
        self.summary_length = summary_length
        self._set_dropout(dropout, seed)

    @property
    def _pattern(self) -> dict:
        count = self.summary_length if self.pattern == "fixed" else 0
        return {"stride": self.stride, "summary_length": count}

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        masks = (inputs.mask_of_keys(), inputs.query_mask)
        return self._attend_heads(
            heads, use_causal_mask, *masks, training, self._dropping(training)
        )

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        widths = (self.key_dim, self.value_dim)
        return initial_cache(
            batch_size, self.num_heads, widths, self.compute_dtype, max_length, beams
        )

    def attend_prompt(self, query, cache, real):
        heads = self._project_prompt(query, real)
        output = self._attend_heads(heads, is_causal=True)
        return output, continued(cache, heads["key"], heads["value"], real)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project(query, query, None)
        position = query_position(cache, index)
        cache = cache.append(heads["key"], heads["value"], index)
        beams = query.shape[1]
        seen = strided_pairs(
            ops.reshape(position, (-1, 1)),
            slot_positions(cache, beams),
            **self._pattern,
            is_causal=True,
        )
        mask = (
            *visible_slots(cache, position, beams, ancestor_mask),
            ops.expand_dims(seen, (1, 2)),
        )
        context = dot_product_attention(
            heads["query"], cache.key, cache.value, mask=mask, every_query_attends=True
        )
        return self._project_back(context), cache

    def _attend_heads(self, heads, is_causal, key_mask=None, *options):
        attend = partial(
            strided_attention,
            heads["query"],
            heads["key"],
            key_mask=key_mask,
            is_causal=is_causal,
            **self._pattern,
        )
        return self._attend_by_keys(attend, heads["value"], key_mask, *options, is_causal=is_causal)
