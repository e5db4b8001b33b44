"""Boolean attention masks: True marks what may be attended to."""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn.ops.known_values import fail_where_false, known_values
from keras_attn.tensors import Tensor
from keras_attn.validation import require

_EXPECTED = (
    "1 (True) where something may be attended to, and 0 elsewhere; additive masks are not "
    "supported."
)


def padding_mask(ids: Tensor) -> Tensor:
    """Marks the positions that are not padding.

    Args:
        ids: Integer tensor (batch, length), 0 where there is padding.

    Returns:
        Boolean tensor (batch, length), True where `ids` is not 0.

    Examples:
        >>> np.asarray(padding_mask(np.array([[5, 7, 3], [4, 0, 0]])))
        array([[ True,  True,  True],
               [ True, False, False]])
    """
    return ops.not_equal(ids, 0)


def boolean_masks(**given: Any) -> tuple:
    """Reads masks as Keras' layers take them: boolean, or 0 and 1 of any number type.

    Anything else, such as an additive mask, is refused, so that it is never inverted. While a graph
    is traced values cannot be seen: one of TensorFlow fails when it runs. XLA and JAX cannot fail:
    there the masks allow everything, and `unless_refused` turns what comes of it into NaN.

    Args:
        **given: Masks by name, or None.

    Returns:
        The boolean masks in their order, one tensor for what is given under several names and None
        where there is none, and at the end a scalar boolean tensor, `False` where a mask is
        refused, or None where no mask had to be traced.

    Raises:
        UserError: A mask holds something else than 0 and 1.
    """
    read: dict[int, tuple] = {}
    for name, mask in given.items():
        if id(mask) not in read:
            read[id(mask)] = _zeros_and_ones(name, mask)
    found = {key: mask for key, (mask, _) in read.items()}
    valid = combine_masks(*(valid for _, valid in read.values()))
    if valid is not None:
        traced = [name for name, mask in given.items() if read[id(mask)][1] is not None]
        names = " and ".join(f"`{name}`" for name in traced)
        fail_where_false(valid, f"{names} must hold {_EXPECTED}")
        found = {key: None if mask is None else mask | ~valid for key, mask in found.items()}
    return (*(found[id(mask)] for mask in given.values()), valid)


def unless_refused(outputs: Tensor, valid: Any) -> Tensor:
    """Turns tensors into NaN where masks that limit them are refused.

    Args:
        outputs: Tensors of any shape in any structure; boolean ones are left as they are.
        valid: What `boolean_masks` returned last.

    Returns:
        Tensors of the shapes of `outputs`; these themselves where `valid` is None.
    """
    if valid is None:
        return outputs

    def refuse(x: Tensor) -> Tensor:
        if x is None or keras.backend.standardize_dtype(x.dtype) == "bool":
            return x
        return ops.where(valid, x, float("nan"))

    return keras.tree.map_structure(refuse, outputs)


def causal_mask(target_length: Any, source_length: Any) -> Any:
    """Makes the mask by which a position attends to itself and to the positions before it.

    The last query is aligned to the last key, so that the mask is right for queries that
    continue a cache: query i may attend to key j where `j <= i + source_length - target_length`.

    Args:
        target_length: Number of queries, an integer or a scalar integer tensor.
        source_length: Number of keys, an integer or a scalar integer tensor.

    Returns:
        Boolean tensor (target, source).

    Examples:
        >>> np.asarray(causal_mask(3, 3)).astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
        >>> np.asarray(causal_mask(1, 3)).astype(int)  # one query, after two cached keys
        array([[1, 1, 1]])
    """
    rows = ops.arange(target_length, dtype="int32") + (source_length - target_length)
    columns = ops.arange(source_length, dtype="int32")
    return ops.expand_dims(columns, 0) <= ops.expand_dims(rows, 1)


def combine_masks(*masks: Any) -> Any:
    """Joins masks with a logical AND, each once however often it is given.

    Args:
        *masks: Boolean tensors whose shapes broadcast together, or None.

    Returns:
        Boolean tensor of the broadcast shape, or None where every mask is None.

    Examples:
        >>> first, second = np.array([True, True, False]), np.array([False, True, True])
        >>> np.asarray(combine_masks(first, None, second))
        array([False,  True, False])
    """
    combined = None
    for mask in {id(mask): mask for mask in masks}.values():
        if mask is not None:
            mask = _boolean("mask", mask)
            combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined


def queries_apart(masks: Iterable[Any]) -> tuple[Any, Any]:
    """Joins the masks that hide queries from all keys alike, and joins the others.

    Args:
        masks: Boolean tensors of rank 4 that broadcast to (batch, heads, target, source), or None.

    Returns:
        The mask (..., target, 1) and the mask (..., source); each None where there is none.
    """
    given = [mask for mask in masks if mask is not None]
    of_queries = combine_masks(*(mask for mask in given if mask.shape[-1] == 1))
    return of_queries, combine_masks(*(mask for mask in given if mask.shape[-1] != 1))


def separate_masks(
    query_mask: Tensor = None,
    value_mask: Tensor = None,
    key_mask: Tensor = None,
    attention_mask: Tensor = None,
) -> tuple:
    """Reshapes each mask to the rank of attention scores, without joining them.

    `keras_attn.ops.dot_product_attention` takes the tuple as its `mask`. Joining a mask over the
    queries with one over the keys would build a (target, source) matrix; the chunked path never
    does.

    Args:
        query_mask: Boolean tensor (batch, target), or None.
        value_mask: Boolean tensor (batch, source), or None.
        key_mask: Boolean tensor (batch, source), or None.
        attention_mask: Boolean tensor (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or None.

    Returns:
        Tuple of boolean tensors of rank 4, each broadcastable to
        (batch, heads, target, source); empty where every mask is None.

    Raises:
        UserError: A mask has another rank.

    Examples:
        >>> real = np.array([[True, True, False]])  # False at padding
        >>> masks = separate_masks(query_mask=real, value_mask=real)
        >>> [mask.shape for mask in masks]
        [(1, 1, 3, 1), (1, 1, 1, 3)]
        >>> x = np.ones((1, 2, 3, 4), "float32")
        >>> dot_product_attention(x, x, x, mask=masks).shape
        (1, 2, 3, 4)
    """
    source_mask = combine_masks(
        _with_rank("value_mask", value_mask, (2,)), _with_rank("key_mask", key_mask, (2,))
    )
    masks = []
    if query_mask is not None:
        # (batch, 1, target, 1)
        masks.append(ops.expand_dims(_with_rank("query_mask", query_mask, (2,)), (1, 3)))
    if source_mask is not None:
        # (batch, 1, 1, source)
        masks.append(ops.expand_dims(source_mask, (1, 2)))
    if attention_mask is not None:
        attention_mask = _with_rank("attention_mask", attention_mask, (2, 3, 4))
        while len(attention_mask.shape) < 4:
            attention_mask = ops.expand_dims(attention_mask, -3)
        masks.append(attention_mask)
    return tuple(masks)


def mask_of_keys(
    length: Any, value_mask: Tensor = None, key_mask: Tensor = None, attention_mask: Tensor = None
) -> Tensor:
    """Joins masks that hide keys from all queries alike, for mechanisms without scores.

    Args:
        length: Number of keys, an integer or a scalar integer tensor.
        value_mask: Boolean tensor (batch, source), or None. An axis of 1 is for all, here too.
        key_mask: Boolean tensor (batch, source), or None.
        attention_mask: Boolean tensor (1, source), (batch, 1, source) or
            (batch, heads or 1, 1, source), or None.

    Returns:
        Boolean tensor (batch or 1, heads or 1, length), or None where nothing is masked.

    Raises:
        UserError: A mask has another rank, or `attention_mask` may differ between queries.
    """
    parts = separate_masks(None, value_mask, key_mask, attention_mask)
    for part in parts:
        require(
            part.shape[2] in (1, None),
            "Without scores `attention_mask` cannot differ between queries: it must be "
            "(1, source), (batch, 1, source) or (batch, heads or 1, 1, source).",
            shape=tuple(part.shape),
        )
    joined = combine_masks(*parts)
    if joined is None:
        return None
    # Where only the running graph knows the number of queries it fails if there are several.
    batch, heads, _, source = ops.shape(joined)
    joined = ops.reshape(joined, (batch, heads, source))
    return ops.broadcast_to(joined, (*ops.shape(joined)[:2], length))


def masked_queries(context: Tensor, query_mask: Tensor) -> Tensor:
    """Gives queries that are padding a context of 0.

    Args:
        context: Float tensor (batch, heads, target, width).
        query_mask: Boolean tensor (batch, target), or None.

    Returns:
        Tensor of the shape and dtype of `context`.
    """
    if query_mask is None:
        return context
    real = ops.expand_dims(_with_rank("query_mask", query_mask, (2,)), (1, 3))
    return ops.where(real, context, ops.zeros((), context.dtype))


def attention_mask(
    query_mask: Tensor = None,
    value_mask: Tensor = None,
    key_mask: Tensor = None,
    attention_mask: Tensor = None,
    causal: bool = False,
    target_length: Any = None,
    source_length: Any = None,
) -> Tensor:
    """Joins padding masks, an attention mask and a causal mask into one.

    Args:
        query_mask: Boolean tensor (batch, target), or None.
        value_mask: Boolean tensor (batch, source), or None.
        key_mask: Boolean tensor (batch, source), or None.
        attention_mask: Boolean tensor (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or None.
        causal: Whether a query may attend only to keys up to its own position, the last query
            being aligned to the last key.
        target_length: Number of queries, an integer or a scalar integer tensor; used when
            `causal`.
        source_length: Number of keys, as `target_length`.

    Returns:
        Boolean tensor that broadcasts to (batch, heads, target, source), with dimensions of 1
        where nothing depends on them, or None where nothing is masked.

    Raises:
        UserError: A mask has another rank, or `causal` without both lengths.

    Examples:
        >>> real = np.array([[True, True, False]])  # False at padding
        >>> mask = attention_mask(value_mask=real, causal=True, target_length=3, source_length=3)
        >>> np.asarray(mask)[0, 0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 0]])
    """
    masks = separate_masks(query_mask, value_mask, key_mask, attention_mask)
    if causal:
        require(
            target_length is not None and source_length is not None,
            "A causal mask needs `target_length` and `source_length`.",
            target_length=target_length,
            source_length=source_length,
        )
        masks += (ops.expand_dims(causal_mask(target_length, source_length), (0, 1)),)
    return combine_masks(*masks)


def with_padding(attention_mask: Tensor, padding_mask: Tensor) -> Tensor:
    """Joins an attention mask with one that marks padding among the keys.

    Args:
        attention_mask: Boolean tensor (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or None.
        padding_mask: Boolean tensor (batch, source), False at padding, or None.

    Returns:
        Boolean tensor of the rank of `attention_mask`, but at least (batch, target or 1, source),
        or None where both are None.
    """
    if padding_mask is not None:
        padding_mask = ops.expand_dims(_with_rank("padding_mask", padding_mask, (2,)), 1)
        if attention_mask is not None and len(attention_mask.shape) == 4:
            padding_mask = ops.expand_dims(padding_mask, 1)
    return combine_masks(attention_mask, padding_mask)


def _with_rank(name: str, mask: Tensor, ranks: tuple[int, ...]) -> Tensor:
    if mask is None:
        return None
    mask = _boolean(name, mask)
    wanted = " or ".join(str(rank) for rank in ranks)
    require(len(mask.shape) in ranks, f"`{name}` must have rank {wanted}.", shape=tuple(mask.shape))
    return mask


def _boolean(name: str, mask: Tensor) -> Tensor:
    found, valid = _zeros_and_ones(name, mask)
    require(
        valid is None,
        f"`{name}` must be boolean where its values are not known yet.",
        **{name: mask},
    )
    return found


def _zeros_and_ones(name: str, mask: Tensor) -> tuple:
    """The boolean mask, and whether it is none but of 0 and 1: None where that is certain."""
    if mask is None:
        return None, None
    mask = ops.convert_to_tensor(mask)
    if keras.backend.standardize_dtype(mask.dtype) == "bool":
        return mask, None
    known = known_values(mask)
    if known is None:
        return ops.not_equal(mask, 0), ops.all(ops.equal(mask, 0) | ops.equal(mask, 1))
    others = known[(known != 0) & (known != 1)]
    require(
        not others.size, f"`{name}` must hold {_EXPECTED}", **{name: np.unique(others)[:3].tolist()}
    )
    return ops.not_equal(mask, 0), None
