"""What goes into a call of attention: that shapes fit each other, as far as they are known."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_attn.ops import masks
from keras_attn.validation import require


def require_attention_inputs(
    query: Any,
    value: Any,
    key: Any = None,
    query_mask: Any = None,
    value_mask: Any = None,
    key_mask: Any = None,
    attention_mask: Any = None,
    num_heads: int = 1,
    same_length: bool = False,
) -> None:
    """Raises unless queries, keys, values and masks fit together.

    Args:
        query: Tensor (batch, target, features).
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features), or `None`.
        query_mask: Mask (batch, target), or `None`.
        value_mask: Mask (batch, source), or `None`.
        key_mask: Mask (batch, source), or `None`.
        attention_mask: Mask (target, source), (batch, target, source) or
            (batch, heads, target, source), or `None`. In masks an axis of 1 is for all.
        num_heads: Number of the mechanism's heads.
        same_length: Whether the mechanism attends within one sequence, target and source being as
            long as each other.

    Raises:
        UserError: An input or a mask has another rank, or a size differs.
    """
    inputs = {"query": query, "value": value} | ({} if key is None else {"key": key})
    for name, x in inputs.items():
        require(
            len(_shape(x)) == 3,
            f"`{name}` must be (batch, length, features).",
            **{f"{name}_shape": _shape(x)},
        )
    batch, target = query.shape[:2]
    source = value.shape[1]
    _require_sizes("value", value, {0: batch} | ({1: target} if same_length else {}))
    if key is not None:
        _require_sizes("key", key, {0: batch, 1: source})
    _require_mask("query_mask", query_mask, {2: (batch, target)})
    _require_mask("value_mask", value_mask, {2: (batch, source)})
    _require_mask("key_mask", key_mask, {2: (batch, source)})
    pairs = (batch, num_heads, target, source)
    pairs = {2: pairs[2:], 3: (batch, *pairs[2:]), 4: pairs}
    _require_mask("attention_mask", attention_mask, pairs)


def reads_masks(call: Callable) -> Callable:
    """Decorates the call of an attention layer, which is then given boolean masks that fit.

    The layer has a method `_require_inputs`, which is given the first seven arguments. Where masks
    of other numbers than 0 and 1 are traced, the call's output becomes NaN.

    Args:
        call: Method of a layer with the first seven arguments of `MultiHeadAttention.call`.
    """

    @functools.wraps(call)
    def reading(
        self: Any,
        query: Any,
        value: Any,
        key: Any = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        *further: Any,
        **options: Any,
    ) -> Any:
        self._require_inputs(query, value, key, query_mask, value_mask, key_mask, attention_mask)
        *given, valid = masks.boolean_masks(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
        )
        outputs = call(self, query, value, key, *given, *further, **options)
        return masks.unless_refused(outputs, valid)

    return reading


def _require_mask(name: str, mask: Any, sizes_by_rank: dict[int, tuple]) -> None:
    if mask is None:
        return
    shape = _shape(mask)
    require(
        len(shape) in sizes_by_rank,
        f"`{name}` must have rank {' or '.join(map(str, sizes_by_rank))}.",
        **{f"{name}_shape": shape},
    )
    sizes = dict(enumerate(sizes_by_rank[len(shape)]))
    _require_sizes(name, mask, sizes, or_one=True)


def _require_sizes(name: str, x: Any, sizes: dict[int, int | None], or_one: bool = False) -> None:
    """Raises where a size is known and another than what is known of it; of a mask 1 is for all."""
    shape = _shape(x)
    fits = all(
        size is None or shape[axis] in (None, size) or (or_one and shape[axis] == 1)
        for axis, size in sizes.items()
    )
    wanted = tuple(sizes.get(axis) for axis in range(len(shape)))
    require(
        fits,
        f"`{name}` does not fit the other inputs.",
        **{f"{name}_shape": shape, "expected": wanted},
    )


def _shape(x: Any) -> tuple:
    """The known sizes; lists have some too."""
    return tuple(x.shape if hasattr(x, "shape") else np.shape(x))
