"""Attention inside a window and to a few global positions, as in ETC."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.global_local_streams import (
    GlobalLocalPieces,
    Stream,
    global_masks,
    joined_masks,
    pair_mask,
    split_stream,
)
from keras_attn.layers.attention.head_projection import ROLES
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.hidden_positions import as_float, without_hidden
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops import masks
from keras_attn.ops.attention import computing_dtype, dot_product_attention
from keras_attn.ops.linear import linear, linear_of_heads
from keras_attn.ops.local_attention import GlobalKeys, local_attention
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class GlobalLocalAttention(BaseMultiHeadAttention):
    """Multi-head self-attention of a long sequence to what is near and to a few global positions.

    A long position attends to those at most `radius` away and to all global ones, a global
    position to everything, each in a single softmax; time and memory are linear in the length.
    The global positions are a sequence of their own, `global_query`, or else the first
    `global_length` of the query. Queries also look for the label of a pair: by default its clipped
    distance, or any structure that `labels` describe.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        radius: Distance of the farthest key that a long position attends to.
        global_length: Number of positions at the start of the query that are global, where there
            is no `global_query`.
        max_distance: Distance from which on all share a label. The labels from 0 to
            `2 * max_distance` are the distances (key's position minus query's) from
            `-max_distance` on.
        num_labels: Number of labels, of distances and others.
        share_projections: Whether global positions are projected by the same weights as long ones.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        use_causal_mask: Must be `False`.
        global_query: Tensor (batch, globals, features), the global positions.
        global_query_mask: Boolean (batch, globals), `False` where a global position is padding.
        labels: `GlobalLocalPieces` of int32 labels. Pairs of one sequence have their distance's
            by default, pairs of a long and a global position none.
        pair_masks: `GlobalLocalPieces` of booleans, `True` where one may attend to the other; of
            `local_to_local` none.

    Returns:
        The output (batch, length, features); with a `global_query` a tuple of it and the output
        (batch, globals, features) of the global positions.

    Raises:
        UserError: A size is not positive, there are fewer labels than distances, `dropout` is
            outside [0, 1), lengths differ, scores or a causal mask are asked for, or an
            `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> layer = GlobalLocalAttention(2, 4, radius=1, global_length=1)
        >>> layer(x, x).shape
        (2, 5, 8)

    Reference:
        Ainslie et al., 2020, https://arxiv.org/abs/2004.08483, section 3.
    """

    can_be_causal = False
    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        radius: int,
        global_length: int = 1,
        max_distance: int = 12,
        num_labels: int = 32,
        share_projections: bool = True,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(
            radius=radius,
            global_length=global_length,
            max_distance=max_distance,
            num_labels=num_labels,
        )
        require(
            num_labels > 2 * max_distance,
            "`num_labels` must be at least 2 * `max_distance` + 1.",
            num_labels=num_labels,
            max_distance=max_distance,
        )
        self.radius = radius
        self.global_length = global_length
        self.max_distance = max_distance
        self.num_labels = num_labels
        self.share_projections = share_projections
        self._set_dropout(dropout, seed)
        self.global_attention = None
        if not share_projections:
            taken = (*BaseMultiHeadAttention.arguments, "trainable", "dtype")
            config = {name: value for name, value in self.get_config().items() if name in taken}
            config |= {"name": "global", "activity_regularizer": None}
            self.global_attention = BaseMultiHeadAttention.from_config(config)

    def build(self, query_shape, value_shape=None, key_shape=None, global_query_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if self.global_attention is not None and global_query_shape is not None:
            self.global_attention.build(global_query_shape)
        elif self.global_attention is not None:
            self.global_attention.build(query_shape, value_shape, key_shape)
        self.label_keys = self.add_weight(
            name="label_keys",
            shape=(self.num_labels, self.num_heads * self.key_dim),
            initializer=separate_initializer(self.kernel_initializer, len(ROLES) + 1),
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
        global_query=None,
        global_query_mask=None,
        labels=None,
        pair_masks=None,
    ):
        inputs = (query, value, key, query_mask, value_mask, key_mask, attention_mask)
        options = (return_attention_scores, training, use_causal_mask)
        own = (global_query, global_query_mask, labels, pair_masks)
        return self._call_checked(inputs, *options, own=own)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask, own):
        global_query, global_query_mask, labels, pair_masks = own
        self._refuse_causal(use_causal_mask, "Global positions attend to everything")
        global_query_mask, *pairs, valid = masks.boolean_masks(
            global_query_mask=global_query_mask, **(pair_masks or GlobalLocalPieces())._asdict()
        )
        visible = inputs.visible(self.compute_dtype)
        local = Stream(*visible, inputs.query_mask, inputs.mask_of_keys())
        if global_query is None:
            few, local = split_stream(local, self.global_length)
        else:
            of_keys = None if global_query_mask is None else ops.expand_dims(global_query_mask, 1)
            global_query = as_float(global_query, self.compute_dtype)
            global_query = without_hidden(global_query, global_query_mask)
            few = Stream(global_query, global_query, None, global_query_mask, of_keys)
        parts = (local, few, labels or GlobalLocalPieces(), GlobalLocalPieces(*pairs))
        outputs = self._attend_streams(*parts, training, global_query is not None)
        output, global_output = (masks.unless_refused(x, valid) for x in outputs)
        if global_query is None:
            return ops.concatenate([global_output, output], axis=1)
        return output, global_output

    def _attend_streams(self, local, few, labels, pair_masks, training, has_own) -> tuple:
        """The outputs of the long positions and of the few global ones, which are others or not."""
        dropping = self._dropping(training)
        of_few = self.global_attention or self
        heads = self._project(*local[:3], training)
        few_heads = of_few._project(*few[:3], training)
        by_label = self._label_scores(heads["query"])
        keys = GlobalKeys(
            few_heads["key"],
            few_heads["value"],
            pair_mask(few.key_mask, pair_masks.local_to_global),
            _of_labels(by_label, labels.local_to_global),
        )
        attend_near = partial(
            local_attention,
            heads["query"],
            heads["key"],
            window=self.radius + 1,
            key_mask=local.key_mask,
            bias=self._local_bias(by_label, labels.local_to_local),
        )
        attend_all = partial(
            dot_product_attention,
            few_heads["query"],
            ops.concatenate([few_heads["key"], heads["key"]], axis=2),
            mask=global_masks(few, local, pair_masks),
            bias=self._global_bias(few_heads["query"], heads["query"], labels),
            implementation="dense",
        )
        values = ops.concatenate([few_heads["value"], heads["value"]], axis=2)
        context = attend_near(heads["value"], global_keys=keys, **dropping)
        global_context = attend_all(values, **dropping)
        self._record(attend_near, keys, attend_all, values, few, local, has_own)
        context = masks.masked_queries(context, local.real)
        global_context = masks.masked_queries(global_context, few.real)
        return (
            self._project_back(context, training),
            of_few._project_back(global_context, training),
        )

    def _record(self, attend_near, keys, attend_all, values, few, local, has_own):
        """Records global and long positions in one matrix, the global ones first."""
        count = few.query.shape[1]

        def attend(values):
            near, far = values[:, :, count:], keys._replace(value=values[:, :, :count])
            contexts = [attend_all(values), attend_near(near, global_keys=far)]
            return ops.concatenate(contexts, axis=2)

        before = count if has_own else 0
        key_mask, query_mask = joined_masks(few, local)
        record_attention(
            self,
            attend,
            values,
            key_mask,
            query_mask=query_mask,
            rows_before=before,
            columns_before=before,
            pattern={"window": self.radius + 1, "globals": count},
        )

    def _label_scores(self, query):
        """How well queries fit each label: (batch, heads, target, num_labels), scaled."""
        dtype = computing_dtype(query.dtype)
        keys = ops.reshape(
            ops.cast(self.label_keys, dtype), (self.num_labels, self.num_heads, self.key_dim)
        )
        keys = ops.transpose(keys, (1, 2, 0))
        return linear_of_heads(ops.cast(query, dtype) * self.key_dim**-0.5, keys)

    def _local_bias(self, by_label, labels):
        """What labels add to the scores of a window: (batch, heads, length, 2 * radius + 1)."""
        if labels is not None:
            return _of_labels(by_label, labels)
        distances = ops.arange(-self.radius, self.radius + 1, dtype="int32")
        labels = ops.one_hot(
            self._distance_labels(distances), self.num_labels, axis=0, dtype=by_label.dtype
        )
        # All queries have the same labels: a product's gradient costs less than a gather's.
        return linear(by_label, labels)

    def _global_bias(self, query, local_query, labels):
        """What labels add to a global position's scores: (batch, heads, globals, all)."""
        by_label = self._label_scores(query)
        batch, heads, count = ops.shape(by_label)[:3]
        of_few, of_local = labels.global_to_global, labels.global_to_local
        if of_few is None:
            at = ops.arange(count, dtype="int32")
            of_few = self._distance_labels(
                ops.expand_dims(at, (0, 1)) - ops.expand_dims(at, (0, 2))
            )
        none = ops.zeros((batch, heads, count, ops.shape(local_query)[2]), by_label.dtype)
        local = none if of_local is None else _of_labels(by_label, of_local)
        return ops.concatenate([_of_labels(by_label, of_few), local], axis=-1)

    def _distance_labels(self, distances):
        return ops.clip(distances, -self.max_distance, self.max_distance) + self.max_distance

    def compute_output_spec(self, *args, global_query=None, **kwargs):
        output = super().compute_output_spec(*args, **kwargs)
        if global_query is None:
            return output
        shape = self.compute_output_shape(global_query.shape)
        return output, keras.KerasTensor(shape, self.compute_dtype)


def _of_labels(by_label: Any, labels: Tensor) -> Any:
    """What the labels (batch or 1, target, pairs) add to scores, or None where there are none."""
    if labels is None:
        return None
    shape = (*ops.shape(by_label)[:3], ops.shape(labels)[2])
    if 0 in by_label.shape:  # TensorFlow cannot gather from nothing
        return ops.zeros(shape, by_label.dtype)
    labels = ops.broadcast_to(ops.expand_dims(ops.cast(labels, "int32"), 1), shape)
    return ops.take_along_axis(by_label, labels, axis=-1)
