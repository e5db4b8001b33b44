"""Exact attention in memory linear in the lengths: online softmax, with its own gradient.

Queries and keys are cut into blocks, laid out block first. The forward pass visits the key blocks
of each query block with a running maximum and sum, and keeps the log-sum-exp of every row of
scores. The backward pass computes each block of scores again.

Loops that return one block a step are `ops.scan`, whose TensorFlow implementation appends
without copying and never runs steps ahead, as `ops.map` and `ops.while_loop` do; it asks that a
step returns what it carries.
"""

import dataclasses
import functools
from typing import Any

import keras
from keras import ops

from keras_attn.ops.autodiff import custom_gradient
from keras_attn.ops.blockwise.blocks import BlockMask, Cut
from keras_attn.ops.devices import has_accelerator
from keras_attn.ops.dropout import DrawnSeed
from keras_attn.ops.masks import combine_masks
from keras_attn.ops.softmax import MASKED_SCORE, softmax_with_sums
from keras_attn.tensors import Tensor

# Scores in a block over all heads, as a power of 2: 4 MiB of float32 stay in a CPU's cache; 64 MiB
# keep an accelerator busy, twice as fast as 4 MiB on an H100.
BLOCK_SCORES_LOG2 = 20
BLOCK_SCORES_LOG2_OF_ACCELERATORS = 24


def chunked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: tuple = (),
    scale: float = 1.0,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
    dtype: str = "float32",
    query_block: int | None = None,
    key_block: int | None = None,
) -> Tensor:
    """Computes what `keras_attn.ops.dot_product_attention` says, block by block.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        key: Float tensor (batch, kv_heads, source, key_dim).
        value: Float tensor (batch, kv_heads, source, value_dim).
        masks: Boolean tensors of rank 4, each broadcastable to (batch, heads, target, source);
            none is ever broadcast to that shape.
        scale: Factor of the scores.
        is_causal: Whether to mask what follows a query, the last query being aligned to the last
            key. Blocks that are masked as a whole are not computed.
        dropout: Fraction of probabilities to drop. The dropped ones depend on the seed and
            the block sizes; the backward pass draws them again.
        seed: Generator of dropout's random numbers, drawn from once.
        dtype: The dtype to compute in, "float32" or "float64".
        query_block: Most queries in a block; chosen by the number of heads where None.
        key_block: Most keys in a block; chosen in the same way.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `query`.

    Reference:
        Rabe and Staats, "Self-attention Does Not Need O(n²) Memory"; Dao et al.,
        "FlashAttention", algorithms 1 and 4.
    """
    bits = BLOCK_SCORES_LOG2_OF_ACCELERATORS if has_accelerator() else BLOCK_SCORES_LOG2
    bits -= (query.shape[1] - 1).bit_length()
    attention = _BlockwiseAttention(
        rows=Cut.of(ops.shape(query)[2], query_block or 1 << (bits + 1) // 2),
        columns=Cut.of(ops.shape(key)[2], key_block or 1 << bits // 2),
        heads=query.shape[1],
        kv_heads=key.shape[1],
        key_dim=key.shape[-1],
        scale=scale,
        is_causal=is_causal,
        dropout=dropout,
        dtype=dtype,
    )
    # Everything is an argument, because JAX forbids closing over what is being transformed.
    seeds = (seed.next(),) if dropout else ()
    context = custom_gradient(attention.with_gradient)(query, key, value, *seeds, *masks)
    # Of unknown lengths the loops leave no sizes known.
    batch, heads, target = ops.shape(query)[:3]
    return ops.reshape(context, (batch, heads, target, value.shape[-1]))


@dataclasses.dataclass(frozen=True)
class _BlockwiseAttention:
    """One call of `chunked_attention`: its options and what every block needs."""

    rows: Cut
    columns: Cut
    heads: int
    kv_heads: int
    key_dim: int
    scale: float
    is_causal: bool
    dropout: float
    dtype: str
    block_masks: tuple = ()
    seed: Any = None

    def with_gradient(self, query: Tensor, key: Tensor, value: Tensor, *others: Any) -> tuple:
        """Returns the context and the function of its gradient; `others` are seed and masks."""
        seed, masks = (others[0], others[1:]) if self.dropout else (None, others)
        row_mask, key_mask, block_masks = self._sort_masks(masks)
        blocks = self._split_inputs(query, key, value, key_mask)
        attention = dataclasses.replace(self, block_masks=block_masks, seed=seed)
        context, norms = map(self.rows.join, attention._forward(*blocks))
        if row_mask is not None:
            context = ops.where(row_mask, context, 0.0)
            norms = ops.where(row_mask, norms, -MASKED_SCORE)

        def gradient(upstream: Tensor) -> tuple:
            upstream = ops.cast(upstream, self.dtype)
            shares = ops.sum(upstream * context, axis=-1, keepdims=True)
            rows = map(self._split_rows, (upstream, norms, shares))
            query_grad, key_grad, value_grad = attention._backward(*blocks, *rows)
            return (
                ops.cast(self.rows.join(query_grad) * self.scale, query.dtype),
                ops.cast(self.columns.join(key_grad), key.dtype),
                ops.cast(self.columns.join(value_grad), value.dtype),
                *(None for _ in others),
            )

        return ops.cast(context, query.dtype), gradient

    def _sort_masks(self, masks: tuple) -> tuple:
        """Joins masks of rows and masks of keys; the others have to be read block by block."""
        row_mask, key_mask, block_masks = None, None, []
        for mask in masks:
            _, heads, target, source = mask.shape
            if source == 1:
                row_mask = combine_masks(row_mask, mask)
            elif heads == 1 and target == 1:
                key_mask = combine_masks(key_mask, mask)
            else:
                block_masks.append(BlockMask(mask, self.rows, self.columns, self.kv_heads))
        if key_mask is not None or self.columns.may_pad:
            every_key = ops.ones((1, 1, 1, self.columns.length), dtype="bool")
            key_mask = combine_masks(key_mask, every_key)
        return row_mask, key_mask, tuple(block_masks)

    def _split_inputs(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor) -> tuple:
        query = ops.cast(query, self.dtype) * self.scale
        key = self.columns.pad(ops.cast(key, self.dtype))
        value = self.columns.pad(ops.cast(value, self.dtype))
        if key_mask is not None:
            # One more column of the product adds the mask to the scores without a pass over
            # them: [query, 1] · [key, 0 or MASKED_SCORE].
            key_mask = self.columns.pad(ops.swapaxes(key_mask, 2, 3))
            column = ops.where(key_mask, ops.zeros_like(key[..., :1]), MASKED_SCORE)
            key = ops.concatenate([key, column], axis=-1)
            query = ops.concatenate([query, ops.ones_like(query[..., :1])], axis=-1)
        return (
            self._split_rows(query),
            self.columns.split(key, self.kv_heads),
            self.columns.split(value, self.kv_heads),
        )

    def _split_rows(self, tensor: Tensor) -> Tensor:
        return self.rows.split(self.rows.pad(tensor), self.kv_heads)

    def _forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> tuple:
        """Returns blocks of the context and of the log-sum-exp of each row of scores."""

        def visit_key(row_block, query, column_block, highest, total, context):
            scores = self._scores(row_block, column_block, query, keys[column_block])
            weights, top, block_total = softmax_with_sums(scores)
            if self.dropout:
                weights *= self._keep(row_block, column_block, weights)
            higher = ops.maximum(highest, top)
            decay = ops.exp(highest - higher)
            share = ops.exp(top - higher) * block_total
            total = total * decay + share
            context = context * decay + ops.matmul(weights, values[column_block]) * share
            return column_block + 1, higher, total, context

        def visit_row(_, row_block):
            visits = self._visits(row_block)
            _, highest, total, context = ops.while_loop(
                lambda column_block, *_: column_block < visits,
                functools.partial(visit_key, row_block, queries[row_block]),
                (ops.zeros((), "int32"), nothing + MASKED_SCORE, nothing, empty),
            )
            live = highest > MASKED_SCORE / 2
            total = ops.where(live, total, 1.0)
            # Where all is masked, a huge log-sum-exp makes the backward pass's probabilities 0.
            norms = ops.where(live, highest + ops.log(total), -MASKED_SCORE)
            block = (ops.where(live, context / total, 0.0), norms)
            return block, block

        nothing = ops.zeros_like(queries[0][..., :1])
        # (batch, kv_heads, group * rows, value_dim)
        empty = ops.repeat(nothing, values.shape[-1], axis=-1)
        return ops.scan(visit_row, (empty, nothing), ops.arange(self.rows.count, dtype="int32"))[1]

    def _backward(self, queries, keys, values, upstreams, norms, shares):
        """Returns blocks of the gradients of queries, keys and values."""

        def add_block(row_block, column_block, query_grad, key_grad, value_grad):
            query, upstream = queries[row_block], upstreams[row_block]
            key, value = keys[column_block], values[column_block]
            scores = self._scores(row_block, column_block, query, key)
            weights = ops.exp(scores - norms[row_block])
            # Without the column of the mask.
            query, key = query[..., : self.key_dim], key[..., : self.key_dim]
            grad = ops.matmul(upstream, ops.swapaxes(value, -1, -2))
            dropped = weights
            if self.dropout:
                keep = self._keep(row_block, column_block, weights)
                dropped, grad = weights * keep, grad * keep
            grad = weights * (grad - shares[row_block])
            return (
                query_grad + ops.matmul(grad, key),
                key_grad + ops.matmul(ops.swapaxes(grad, -1, -2), query),
                value_grad + ops.matmul(ops.swapaxes(dropped, -1, -2), upstream),
            )

        def visit_row(row_block, query_grads, key_grads, value_grads):
            visits = self._visits(row_block)

            def visit_key(carry, column_block):
                grads = (carry[0], key_grads[column_block], value_grads[column_block])
                if self.is_causal:
                    grads = ops.cond(
                        column_block < visits,
                        lambda: add_block(row_block, column_block, *grads),
                        lambda: grads,
                    )
                else:
                    grads = add_block(row_block, column_block, *grads)
                return grads, grads

            start = (query_grads[0], key_grads[0], value_grads[0])
            start = tuple(ops.zeros_like(part) for part in start)
            (query_grad, _, _), (_, key_grads, value_grads) = ops.scan(
                visit_key, start, ops.arange(self.columns.count, dtype="int32")
            )
            query_grads = ops.scatter_update(
                query_grads, ops.reshape(row_block, (1, 1)), ops.expand_dims(query_grad, 0)
            )
            return row_block + 1, query_grads, key_grads, value_grads

        grads = (queries[..., : self.key_dim], keys[..., : self.key_dim], values)
        grads = tuple(ops.zeros_like(part) for part in grads)

        def visit_rows():
            start = (ops.zeros((), "int32"), *grads)
            return ops.while_loop(lambda row, *_: row < self.rows.count, visit_row, start)[1:]

        # TensorFlow refuses to update rows of nothing.
        batch = ops.shape(queries)[1]
        if isinstance(batch, int):
            return visit_rows() if batch else grads
        return ops.cond(batch > 0, visit_rows, lambda: grads)

    def _scores(
        self, row_block: Tensor, column_block: Tensor, query: Tensor, key: Tensor
    ) -> Tensor:
        # (batch, kv_heads, group * rows, columns)
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2))

        def masked() -> Any:
            allowed = [mask.block(row_block, column_block) for mask in self.block_masks]
            if self.is_causal:
                allowed.append(self._causal_block(row_block, column_block))
            batch, kv_heads, rows, columns = ops.shape(scores)
            group = self.heads // self.kv_heads
            grouped = ops.reshape(scores, (batch, kv_heads, group, rows // group, columns))
            grouped = ops.where(combine_masks(*allowed), grouped, MASKED_SCORE)
            return ops.reshape(grouped, (batch, kv_heads, rows, columns))

        if self.block_masks:
            return masked()
        if self.is_causal:
            crossed = self._last_key(row_block * self.rows.size) < (
                (column_block + 1) * self.columns.size - 1
            )
            return ops.cond(crossed, masked, lambda: scores)
        return scores

    def _last_key(self, row: Any) -> Any:
        """The last key that a query may attend to under a causal mask."""
        return row + self.columns.length - self.rows.length

    def _visits(self, row_block: Tensor) -> Tensor:
        """The number of key blocks that a block of queries may attend to."""
        if not self.is_causal:
            return self.columns.count
        last_row = (row_block + 1) * self.rows.size - 1
        blocks = self._last_key(last_row) // self.columns.size + 1
        return ops.minimum(ops.maximum(blocks, 0), self.columns.count)

    def _causal_block(self, row_block: Tensor, column_block: Tensor) -> Tensor:
        rows = row_block * self.rows.size + ops.arange(self.rows.size, dtype="int32")
        columns = column_block * self.columns.size + ops.arange(self.columns.size, dtype="int32")
        return ops.expand_dims(columns, 0) <= ops.expand_dims(self._last_key(rows), 1)

    def _keep(self, row_block: Tensor, column_block: Tensor, like: Any) -> Tensor:
        """Dropout's factors of a block: 0 or 1 / (1 - rate), the same each time they are drawn."""
        number = row_block * self.columns.count + column_block
        return keras.random.dropout(
            ops.ones_like(like), self.dropout, seed=DrawnSeed(self.seed, number)
        )
