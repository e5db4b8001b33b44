"""What attention layers attend to, shown to whoever looks while they are called.

Attention is linear in its values: given as values the rows of an identity matrix, it gives its
weights. So each mechanism shows what its own computation weights, in windows, buckets, chunks or
sums, without a second formula.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from keras import ops

from keras_attn.ops import masks

_SHOWN: ContextVar[list | None] = ContextVar("keras_attn_shown_attention", default=None)


@dataclasses.dataclass(frozen=True)
class CapturedAttention:
    """What one call of an attention layer attended to.

    Attributes:
        layer: The layer.
        weights: Tensor (batch, heads, target, source): the context is their sum of the values.
        query_real: Boolean (batch, target), `False` at queries that are known to be padding.
        source_real: Boolean (batch, source), `False` at what nothing may attend to.
        crosses: Whether queries and values are different sequences.
        is_causal: Whether a query sees none that follow it.
        is_softmax: Whether the weights are a softmax of scores.
        is_step: Whether it was one position of several that follow each other.
        rows_before: How many rows stand before those of the query's sequence.
        columns_before: How many columns stand before those of the value's sequence.
        pattern: What decides which pairs may meet, by name: `window`, `globals`, `buckets`, …
    """

    layer: Any
    weights: Any
    query_real: Any
    source_real: Any
    crosses: bool = False
    is_causal: bool = False
    is_softmax: bool = True
    is_step: bool = False
    rows_before: int = 0
    columns_before: int = 0
    pattern: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def capture_attention() -> Iterator[list[CapturedAttention]]:
    """Captures what the attention layers attend to that are called within the context.

    Dropout is left out of what is seen. Nothing stays behind, neither on layers nor elsewhere.
    While a graph is traced its tensors are captured; those of the body of a loop, `is_step`, are of
    no use outside of it.

    Yields:
        A list that grows by a `CapturedAttention` with each call.
    """
    found: list[CapturedAttention] = []
    with _shown_to(found):
        yield found


@contextlib.contextmanager
def rearranged(change: Callable[[CapturedAttention], CapturedAttention]) -> Iterator[None]:
    """Lets a layer say in its own terms what the layers inside it attended to.

    Args:
        change: Takes what an inner layer showed, and returns what is shown in its place.
    """
    outer = _SHOWN.get()
    if outer is None:
        yield
        return
    found: list[CapturedAttention] = []
    with _shown_to(found):
        yield
    outer.extend(map(change, found))


def noted(**facts: Any) -> contextlib.AbstractContextManager[None]:
    """Adds facts, fields of `CapturedAttention`, to what inner layers show."""
    return rearranged(lambda shown: dataclasses.replace(shown, **facts))


def show_found(found: CapturedAttention) -> None:
    """Shows what was captured elsewhere; does nothing where nobody looks."""
    shown = _SHOWN.get()
    if shown is not None:
        shown.append(found)


def is_capturing() -> bool:
    """Whether anybody looks."""
    return _SHOWN.get() is not None


def show_attention(
    layer: Any,
    attend: Callable[[Any], Any],
    value: Any,
    mask: Any = None,
    query_mask: Any = None,
    **facts: Any,
) -> None:
    """Shows what a layer attends to; does nothing where nobody looks.

    Args:
        layer: The layer.
        attend: Takes values (batch, heads, source, any width) and returns contexts
            (batch, heads, target, that width), without dropout.
        value: The values, (batch, heads, source, value_dim).
        mask: What may be attended to: boolean tensors, or a tuple of some, of rank 4 or, without
            the axis of the queries, of rank 3, which broadcast to (batch, heads, target, source).
        query_mask: Boolean (batch, target), `False` at padding, where it is not part of the mask.
        **facts: Further fields of `CapturedAttention`.
    """
    shown = _SHOWN.get()
    if shown is None:
        return
    batch, heads, source = ops.shape(value)[:3]
    query_real, source_real = _real(mask)
    # Values of padding count for nothing, which some mechanisms rely upon instead of a mask.
    identity = ops.eye(source, dtype=value.dtype)[None, None]
    identity = ops.broadcast_to(identity, (batch, heads, source, source))
    if source_real is not None:
        identity = identity * ops.cast(source_real, value.dtype)[:, None, :, None]
    weights = masks.masked_queries(attend(identity), query_mask)
    target = ops.shape(weights)[2]
    query_real = masks.combine_masks(query_real, query_mask)
    found = CapturedAttention(
        layer,
        weights,
        _filled(query_real, (batch, target)),
        _filled(source_real, (batch, source)),
        **facts,
    )
    shown.append(found)


def is_other(query: Any, value: Any) -> bool:
    """Whether somebody looks and would see queries and values of different sequences.

    While a graph is traced there are no values to compare, and different tensors count as others.
    """
    if _SHOWN.get() is None or query is value:
        return False
    if tuple(query.shape) != tuple(value.shape):
        return True
    try:
        return not bool(ops.all(ops.equal(query, ops.cast(value, query.dtype))))
    except TypeError:
        return True


@contextlib.contextmanager
def _shown_to(found: list[CapturedAttention]) -> Iterator[None]:
    token = _SHOWN.set(found)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def _real(mask: Any) -> tuple:
    """Which queries and which keys are in any pair that the masks allow, or `None`."""
    parts = mask if isinstance(mask, tuple | list) else (mask,)
    parts = [
        part if len(part.shape) == 4 else part[:, :, None] for part in parts if part is not None
    ]
    joined = masks.combine_masks(*parts)
    if joined is None:
        return None, None
    return ops.any(joined, axis=(1, 3)), ops.any(joined, axis=(1, 2))


def _filled(real: Any, shape: tuple) -> Any:
    return ops.ones(shape, "bool") if real is None else ops.broadcast_to(real, shape)
