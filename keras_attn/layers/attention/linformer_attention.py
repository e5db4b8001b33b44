"""Attention to a fixed number of learned mixtures of positions, as in "Linformer"."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import SourceSteps
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops import masks
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.linear import with_leading_axes
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LinformerAttention(SourceSteps, BaseMultiHeadAttention):
    """Multi-head attention to as many learned mixtures of keys and values as `projected_length`.

    Keys and values are projected along their length, so time and memory are linear in the lengths.
    A mixture holds all positions, later ones too: there is no causal form. Padding has no weight in
    any mixture. Masks hide keys from all queries alike.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        max_length: Greatest length of keys and values.
        projected_length: Number of mixtures.
        share_heads: Whether all heads mix alike (headwise sharing).
        share_key_value: Whether keys and values are mixed alike.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        attention_mask: Boolean (batch, 1, source) or (batch, heads or 1, 1, source), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        use_causal_mask: Must be `False`.

    Returns:
        The output (batch, target, features).

    Raises:
        UserError: A size is not positive, keys are longer than `max_length`, `dropout` is outside
            [0, 1), scores or a causal mask are asked for, or an `attention_mask` differs between
            queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LinformerAttention(2, 4, max_length=16, projected_length=3)(x, x).shape
        (2, 5, 8)

    Reference:
        Wang et al., 2020, https://arxiv.org/abs/2006.04768, section 4.
    """

    can_be_causal = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        max_length: int,
        projected_length: int,
        share_heads: bool = True,
        share_key_value: bool = False,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(max_length=max_length, projected_length=projected_length)
        self.max_length = max_length
        self.projected_length = projected_length
        self.share_heads = share_heads
        self.share_key_value = share_key_value
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        roles = ("key_value",) if self.share_key_value else ("key", "value")
        heads = 1 if self.share_heads else self.num_heads
        self.mixtures = [
            self.add_weight(
                name=f"{role}_mixtures",
                shape=(heads, self.max_length, self.projected_length),
                initializer=separate_initializer(self.kernel_initializer, 5 + number),
                regularizer=self.kernel_regularizer,
                constraint=self.kernel_constraint,
            )
            for number, role in enumerate(roles)
        ]

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        self._refuse_causal(use_causal_mask, "Mixtures hold all positions")
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        mask = inputs.mask_of_keys()
        key = self._mixed(heads["key"], mask, 0)
        attend = partial(self._attend_mixtures, heads["query"], key, mask)
        options = (inputs.query_mask, training, self._dropping(training))
        return self._attend_by_keys(attend, heads["value"], mask, *options, inputs=inputs)

    def _attend_mixtures(self, query, key, key_mask, value, **dropping):
        """Attends to mixed keys and to values that are still to be mixed."""
        value = self._mixed(value, key_mask, -1)
        seen = None
        if key_mask is not None:
            # (batch or 1, heads or 1, 1, 1): mixtures of nothing are not attended to.
            seen = ops.expand_dims(ops.any(key_mask, axis=-1, keepdims=True), -1)
        return dot_product_attention(query, key, value, mask=seen, **dropping)

    def _mixed(self, x: Tensor, mask: Tensor, number: int) -> Any:
        """(batch, heads, source, width) to (batch, heads, projected_length, width)."""
        length = x.shape[2]
        require(
            length is None or length <= self.max_length,
            "Keys must not be longer than `max_length`.",
            length=length,
            max_length=self.max_length,
        )
        if mask is not None:
            x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros((), x.dtype))
        weights = ops.cast(self.mixtures[number], x.dtype)
        weights = ops.swapaxes(part(weights, 1, 0, ops.shape(x)[2]), -1, -2)
        return ops.matmul(with_leading_axes(weights, x), x)

    def project_source(self, value, key=None, value_mask=None) -> dict:
        value, key, value_mask = self._visible_source(value, key, value_mask)
        heads = self._project(None, value, key)
        mask = masks.mask_of_keys(ops.shape(value)[1], value_mask)
        source = {"key": self._mixed(heads["key"], mask, 0), "value": heads["value"]}
        return source if mask is None else source | {"mask": mask}

    def attend_source(self, query, source: dict):
        heads = self._project(query, None, None)
        mask, value = source.get("mask"), source["value"]
        attend = partial(self._attend_mixtures, heads["query"], source["key"], mask)
        record_attention(self, attend, value, mask, crosses=True)
        return self._project_back(attend(value))
