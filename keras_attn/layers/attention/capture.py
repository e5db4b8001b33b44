"""Records the attention weights of layers called inside `capture_attention()`.

Attention is linear in its values: given the rows of an identity matrix as values, it returns its
weights. So what is recorded is what a mechanism's own computation weights, in windows, buckets,
chunks or sums, without a second formula.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from keras import ops

from keras_attn.ops import masks
from keras_attn.tensors import Tensor

_RECORDS: ContextVar[list | None] = ContextVar("keras_attn_attention_records", default=None)


@dataclasses.dataclass(frozen=True)
class CapturedAttention:
    """The attention weights of one call of a layer.

    Attributes:
        layer: The layer.
        weights: Tensor (batch, heads, target, source): the context is their sum of the values.
        query_real: Boolean (batch, target), `False` at queries that are known to be padding.
        source_real: Boolean (batch, source), `False` where no query may attend.
        crosses: Whether queries and values are different sequences.
        is_causal: Whether a query attends to no position after its own.
        is_softmax: Whether the weights are a softmax of scores.
        is_step: Whether the call was one step of a loop over positions.
        rows_before: Number of rows before those of the query's sequence.
        columns_before: Number of columns before those of the value's sequence.
        pattern: Limits of the pairs that may meet, by name: `window`, `globals`, `buckets`, …
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
    """Records the weights of all attention layers that are called within the context.

    Weights are recorded without dropout, and nothing is kept on the layers. While a graph is traced
    its tensors are recorded; those of the body of a loop, `is_step`, cannot be used outside of it.

    Yields:
        A list that grows by a `CapturedAttention` with each call.
    """
    found: list[CapturedAttention] = []
    with _recording_to(found):
        yield found


@contextlib.contextmanager
def rearranged(change: Callable[[CapturedAttention], CapturedAttention]) -> Iterator[None]:
    """Changes what the layers called within the context record.

    Args:
        change: Takes the record of an inner layer, and returns the one to keep in its place.
    """
    outer = _RECORDS.get()
    if outer is None:
        yield
        return
    found: list[CapturedAttention] = []
    with _recording_to(found):
        yield
    outer.extend(map(change, found))


def noted(**facts: Any) -> contextlib.AbstractContextManager[None]:
    """Sets fields of `CapturedAttention` in the records of inner layers."""
    return rearranged(lambda found: dataclasses.replace(found, **facts))


def show_found(found: CapturedAttention) -> None:
    """Adds a record made elsewhere; does nothing outside of `capture_attention()`."""
    records = _RECORDS.get()
    if records is not None:
        records.append(found)


def is_capturing() -> bool:
    """Whether a layer called now is inside `capture_attention()`."""
    return _RECORDS.get() is not None


def record_attention(
    layer: Any,
    attend: Callable[[Any], Any],
    value: Tensor,
    mask: Tensor = None,
    inputs: Tensor = None,
    query_mask: Tensor = None,
    pattern: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    **facts: Any,
) -> None:
    """Records the weights of a layer; does nothing outside of `capture_attention()`.

    Args:
        layer: The layer.
        attend: Takes values (batch, heads, source, any width) and returns contexts
            (batch, heads, target, that width), without dropout.
        value: The values, (batch, heads, source, value_dim).
        mask: What may be attended to: boolean tensors, or a tuple of some, of rank 4 or, without
            the axis of the queries, of rank 3, which broadcast to (batch, heads, target, source).
        inputs: The query and the value of the call, and any others, where the layer may attend to
            another sequence; compared to find out if it does.
        query_mask: Boolean (batch, target), `False` at padding, where it is not part of the mask.
        pattern: Limits of the pairs that may meet, or a function that computes them; the layer's
            `sliding_window` by default.
        **facts: Further fields of `CapturedAttention`.
    """
    records = _RECORDS.get()
    if records is None:
        return
    batch, heads, source = ops.shape(value)[:3]
    query_real, source_real = _real(mask)
    # Values of padding count for nothing, which some mechanisms rely upon instead of a mask.
    identity = ops.eye(source, dtype=value.dtype)[None, None]
    identity = ops.broadcast_to(identity, (batch, heads, source, source))
    if source_real is not None:
        identity = identity * ops.cast(source_real, value.dtype)[:, None, :, None]
    weights = masks.masked_queries(attend(identity), query_mask)
    query_real = masks.combine_masks(query_real, query_mask)
    if inputs is not None:
        facts["crosses"] = are_different(*inputs[:2])
    if pattern is None:
        window = getattr(layer, "sliding_window", None)
        pattern = {} if window is None else {"window": window}
    found = CapturedAttention(
        layer,
        weights,
        _filled(query_real, (batch, ops.shape(weights)[2])),
        _filled(source_real, (batch, source)),
        pattern=pattern() if callable(pattern) else pattern,
        **facts,
    )
    records.append(found)


def are_different(query: Tensor, value: Tensor) -> bool:
    """Whether two sequences differ.

    While a graph is traced there are no values to compare, and different tensors count as others.
    """
    if query is value:
        return False
    if tuple(query.shape) != tuple(value.shape):
        return True
    try:
        return not bool(ops.all(ops.equal(query, ops.cast(value, query.dtype))))
    except TypeError:
        return True


@contextlib.contextmanager
def _recording_to(found: list[CapturedAttention]) -> Iterator[None]:
    token = _RECORDS.set(found)
    try:
        yield
    finally:
        _RECORDS.reset(token)


def _real(mask: Tensor) -> tuple:
    """The queries and the keys that are in any pair which the masks allow, or `None`."""
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
