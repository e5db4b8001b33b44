"""Dot-product attention: one function, computed densely, chunk by chunk or by a fused kernel."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.blockwise.chunked_attention import chunked_attention
from keras_attn.ops.devices import memory_bytes
from keras_attn.ops.dropout import dropout as drop_out
from keras_attn.ops.fused_attention import can_be_fused, fused_attention
from keras_attn.ops.masks import causal_mask, combine_masks, queries_apart
from keras_attn.ops.softmax import MASKED_SCORE, softmax
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_one_of, require_rate

# "auto" is chunked where a head has this many scores, and those of all heads and rows, as often as
# they are kept for the gradient, need more than this fraction of the memory: a model has many
# layers. Dense attention is the faster one on a CPU as long as memory does not decide.
AUTO_CHUNKED_HEAD_SCORES = 2**20
_COPIES = 3  # float32 numbers that are kept of each score
_FRACTION = 1 / 16
_UNKNOWN_BATCH = 32  # rows
# And cuDNN's kernel from this many in one head on: with fewer its backward pass takes longer than
# dense attention's on an H100. PyTorch's is always the faster one.
AUTO_FUSED_HEAD_SCORES = 2**12


def dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor = None,
    bias: Tensor = None,
    scale: float | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
    implementation: str = "auto",
    return_scores: bool = False,
    every_query_attends: bool = False,
) -> Tensor:
    """Computes softmax(scale * query keyᵀ + bias) value under a mask.

    Scores and softmax are computed in float32 (float64 for float64 inputs), so float16 stays
    finite where scores pass 65504. A query with nothing to attend to gets a context (and scores)
    of exactly 0.

    Grouped-query attention: `key` and `value` may have fewer heads than `query`; consecutive
    query heads then share one key and value head.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        key: Float tensor (batch, kv_heads, source, key_dim); `kv_heads` divides `heads`.
        value: Float tensor (batch, kv_heads, source, value_dim).
        mask: Boolean tensor, True where a query may attend, of rank 4 and broadcastable to
            (batch, heads, target, source); or a tuple of such tensors, which must all allow.
            A tuple lets the chunked path keep a mask over the queries and one over the keys
            apart, which joined would fill a (target, source) matrix.
        bias: Finite float tensor added to the scaled scores, of rank 4 and broadcastable to
            (batch, heads, target, source).
        scale: Factor of the scores; `key_dim ** -0.5` where None.
        is_causal: Whether query i may attend only to keys j <= i + source - target: the last
            query is aligned to the last key.
        dropout: Fraction of attention probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.
        implementation: "dense" builds the (target, source) scores. "chunked" is exact too, with
            memory linear in both lengths, forward and backward, but takes no `bias` and returns
            no scores. "flash" is a fused kernel where there is one, PyTorch's or with JAX that of
            an NVIDIA GPU, and it can do this (`keras_attn.ops.fused_attention.can_be_fused`; never
            with `dropout`), else "chunked". "auto" is "flash" where neither `bias` nor
            `return_scores` forbids it, both lengths are known when the function is traced and the
            scores are many: with JAX 2¹² or more a head for the kernel; without one 2²⁰ or more a
            head, and so many in all that three float32 numbers for each need more than a sixteenth
            of the machine's memory, an unknown batch counting as 32. Else it is "dense". Where
            lengths are unknown until run time and may become large, ask for "flash".
        return_scores: Whether to return the attention probabilities too.
        every_query_attends: Whether every query is known to have a key to attend to. This saves
            several operations in a decoding step; the context of a query without such a key is
            undefined then.

    Returns:
        The context (batch, heads, target, value_dim) in the dtype of `query`. With
        `return_scores`, a tuple of it and the probabilities (batch, heads, target, source), in
        the same dtype and, as `keras.layers.MultiHeadAttention` returns them, before dropout.

    Raises:
        UserError: Shapes do not fit, `implementation` is unknown, `dropout` is out of range or
            without `seed`, or "flash" or "chunked" is asked for together with `bias` or
            `return_scores`.

    Examples:
        >>> query = key = np.ones((1, 1, 2, 4), "float32")  # (batch, heads, length, key_dim)
        >>> value = np.array([[[[1.0], [3.0]]]], "float32")
        >>> context = dot_product_attention(query, key, value, is_causal=True)
        >>> np.asarray(context).ravel()  # the first query attends to the first key only
        array([1., 2.], dtype=float32)

    Reference:
        Vaswani et al., "Attention Is All You Need", section 3.2.1; grouped queries: Ainslie et
        al., "GQA"; chunks: Rabe and Staats, "Self-attention Does Not Need O(n²) Memory", and
        Dao et al., "FlashAttention", algorithms 1 and 4.
    """
    query, key, value = (ops.convert_to_tensor(tensor) for tensor in (query, key, value))
    masks = tuple(mask) if isinstance(mask, (tuple, list)) else (mask,)
    masks = tuple(ops.cast(part, "bool") for part in masks if part is not None)
    _check_shapes(query, key, value, masks, bias)
    _check_options(bias, dropout, seed, implementation, return_scores)
    if scale is None:
        scale = query.shape[-1] ** -0.5
    # A single query aligned to the last key sees every key.
    is_causal = is_causal and query.shape[2] != 1
    without_scores = implementation != "dense" and bias is None and not return_scores
    may_be_fused = not dropout and (
        implementation == "flash" or (implementation == "auto" and _has_work_for_kernel(query, key))
    )
    if without_scores and may_be_fused and can_be_fused(query, key, value, masks, is_causal):
        return fused_attention(query, key, value, masks, scale, is_causal, every_query_attends)
    if without_scores and (implementation != "auto" or _is_large(query, key)):
        dtype = computing_dtype(query.dtype)
        return chunked_attention(query, key, value, masks, scale, is_causal, dropout, seed, dtype)
    return attend_by_scores(
        _scaled_scores(query, key, bias, scale),
        value,
        mask=masks,
        is_causal=is_causal,
        dropout=dropout,
        seed=seed,
        return_scores=return_scores,
        every_query_attends=every_query_attends,
        dtype=query.dtype,
    )


def attend_by_scores(
    scores: Tensor,
    value: Tensor,
    mask: Any = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    seed: keras.random.SeedGenerator | None = None,
    return_scores: bool = False,
    every_query_attends: bool = False,
    dtype: Any = None,
) -> Tensor:
    """Computes softmax(scores) value under a mask, wherever the scores come from.

    Args:
        scores: Finite float tensor (batch, heads, target, source), float32 or wider.
        value: Float tensor (batch, kv_heads, source, value_dim); `kv_heads` divides `heads`.
        mask: Boolean tensor that broadcasts to the scores, True where a query may attend; or a
            tuple of such tensors, which must all allow.
        is_causal: Whether query i may attend only to keys j <= i + source - target.
        dropout: Fraction of attention probabilities to drop, in [0, 1).
        seed: The generator of the dropout's random numbers; needed where `dropout` is not 0.
        return_scores: Whether to return the attention probabilities too.
        every_query_attends: Whether the caller knows that no query is masked from all keys: the
            context of one that is need not be 0 then.
        dtype: Dtype of what is returned; that of `value` by default.

    Returns:
        The context (batch, heads, target, value_dim), 0 where a query has nothing to attend to.
        With `return_scores`, a tuple of it and the probabilities (batch, heads, target, source),
        before dropout.
    """
    dtype = value.dtype if dtype is None else dtype
    _, heads, target, source = ops.shape(scores)
    kv_heads = value.shape[1]
    given = mask if isinstance(mask, (tuple, list)) else (mask,)
    # What hides a query from all keys alike is left to its context.
    of_queries, mask = queries_apart(given)
    if is_causal and scores.shape[2] != 1:  # a single query at the last key sees every key
        mask = combine_masks(mask, ops.expand_dims(causal_mask(target, source), (0, 1)))
    if mask is not None:
        scores = ops.where(mask, scores, ops.cast(MASKED_SCORE, scores.dtype))
    probabilities = softmax(scores)
    dropped = drop_out(probabilities, dropout, seed) if dropout else probabilities
    dropped = fold_groups(ops.cast(dropped, value.dtype), kv_heads)
    context = unfold_groups(ops.matmul(dropped, value), heads // kv_heads, target)
    context = ops.cast(context, dtype)
    attends = None
    if not every_query_attends:
        some_key = None if mask is None else ops.any(mask, axis=-1, keepdims=True)
        attends = combine_masks(of_queries, some_key)
    if attends is not None:
        context = ops.where(attends, context, ops.zeros((), context.dtype))
    if not return_scores:
        return context
    if attends is not None:
        probabilities = ops.where(attends, probabilities, ops.zeros((), probabilities.dtype))
    return context, ops.cast(probabilities, dtype)


def _scaled_scores(query: Tensor, key: Tensor, bias: Tensor, scale: float) -> Tensor:
    """Scores (batch, heads, target, source), float32 or wider."""
    dtype = computing_dtype(query.dtype)
    group = query.shape[1] // key.shape[1]
    scores = ops.matmul(
        fold_groups(ops.cast(query, dtype) * scale, key.shape[1]),
        ops.swapaxes(ops.cast(key, dtype), -1, -2),
    )
    # (batch, kv_heads, group * target, source) -> (batch, heads, target, source)
    scores = unfold_groups(scores, group, ops.shape(query)[2])
    return scores if bias is None else scores + ops.cast(bias, dtype)


def _has_work_for_kernel(query: Tensor, key: Tensor) -> bool:
    target, source = query.shape[2], key.shape[2]
    if keras.backend.backend() == "torch":
        return True
    return None not in (target, source) and target * source >= AUTO_FUSED_HEAD_SCORES


def _is_large(query: Tensor, key: Tensor) -> bool:
    batch, heads, target, _ = query.shape
    source = key.shape[2]
    if target is None or source is None:
        return False
    head_scores = target * source
    if head_scores < AUTO_CHUNKED_HEAD_SCORES:
        return False
    rows = _UNKNOWN_BATCH if batch is None else batch
    # Not what is free now: a computation that is traced again must be the same to the bit.
    return 4 * _COPIES * rows * heads * head_scores > _FRACTION * memory_bytes()


def computing_dtype(dtype: Any) -> str:
    """Returns the dtype in which scores are computed: float32, or float64 for float64."""
    return "float64" if keras.backend.standardize_dtype(dtype) == "float64" else "float32"


def fold_groups(tensor: Tensor, kv_heads: int) -> Tensor:
    """Folds the heads that share a key head into the target axis.

    Args:
        tensor: Tensor (batch, heads, target, width).
        kv_heads: Number of key heads, which divides `heads`.

    Returns:
        Tensor (batch, kv_heads, heads // kv_heads * target, width).
    """
    batch, heads, target, width = ops.shape(tensor)
    if heads == kv_heads:
        return tensor
    return ops.reshape(tensor, (batch, kv_heads, heads // kv_heads * target, width))


def unfold_groups(tensor: Tensor, group: int, target: Any) -> Tensor:
    """Undoes `fold_groups`.

    Args:
        tensor: Tensor (batch, kv_heads, group * target, width).
        group: Number of query heads to a key head.
        target: Number of queries.

    Returns:
        Tensor (batch, kv_heads * group, target, width).
    """
    if group == 1:
        return tensor
    batch, kv_heads, _, width = ops.shape(tensor)
    return ops.reshape(tensor, (batch, kv_heads * group, target, width))


def _check_options(
    bias: Tensor, dropout: Any, seed: Any, implementation: Any, return_scores: bool
) -> None:
    require_one_of("implementation", implementation, ("auto", "dense", "chunked", "flash"))
    require_rate(dropout=dropout)
    require(
        not dropout or isinstance(seed, keras.random.SeedGenerator),
        "`dropout` needs a `seed` that is a keras.random.SeedGenerator.",
        dropout=dropout,
        seed=seed,
    )
    if implementation in ("chunked", "flash"):
        require(
            not return_scores,
            f"{implementation.capitalize()} attention never holds the scores, so it cannot return "
            "them.",
            implementation=implementation,
            return_scores=return_scores,
        )
        require(
            bias is None,
            f'{implementation.capitalize()} attention takes no `bias`; use implementation="dense".',
            implementation=implementation,
            bias_shape=None if bias is None else tuple(bias.shape),
        )


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, masks: tuple, bias: Tensor) -> None:
    named = (("query", query), ("key", key), ("value", value))
    shapes = {f"{name}_shape": tuple(tensor.shape) for name, tensor in named}
    query_shape, key_shape, _ = shapes.values()
    require(
        all(len(shape) == 4 for shape in shapes.values()),
        "`query`, `key` and `value` must be (batch, heads, length, width).",
        **shapes,
    )
    for first, second, axes, sizes in (
        ("query", "key", (3,), "width"),
        ("key", "value", (0, 1, 2), "batch, heads and length"),
        ("query", "key", (0,), "batch"),
    ):
        one, other = shapes[f"{first}_shape"], shapes[f"{second}_shape"]
        require(
            all(_same(one[axis], other[axis]) for axis in axes),
            f"`{first}` and `{second}` must have the same {sizes}.",
            **shapes,
        )
    heads, kv_heads = query_shape[1], key_shape[1]
    require(
        heads is not None and kv_heads is not None and kv_heads > 0 and heads % kv_heads == 0,
        "The heads of `key` must divide the heads of `query`.",
        heads=heads,
        kv_heads=kv_heads,
    )
    scores_shape = (query_shape[0], heads, query_shape[2], key_shape[2])
    named = [("mask", mask) for mask in masks] + ([] if bias is None else [("bias", bias)])
    for name, tensor in named:
        shape = tuple(tensor.shape)
        require(
            len(shape) == 4
            and all(
                size == 1 or _same(size, full)
                for size, full in zip(shape, scores_shape, strict=True)
            ),
            f"`{name}` must broadcast to (batch, heads, target, source).",
            **{f"{name}_shape": shape, "scores_shape": scores_shape},
        )


def _same(first: int | None, second: int | None) -> bool:
    return first is None or second is None or first == second
