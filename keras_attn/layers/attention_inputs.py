"""What goes into a call of attention: that shapes fit each other, as far as they are known."""

from typing import Any

import keras
import numpy as np

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
        query_mask: Boolean (batch, target), or `None`.
        value_mask: Boolean (batch, source), or `None`.
        key_mask: Boolean (batch, source), or `None`.
        attention_mask: Boolean (batch, target, source) or (batch, heads, target, source), or
            `None`. In masks an axis of 1 is for all.
        num_heads: Number of the mechanism's heads.
        same_length: Whether the mechanism attends within one sequence, target and source being as
            long as each other.

    Raises:
        UserError: An input or a mask has another rank, a size differs, or a mask holds numbers to
            be added to scores.
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
    pairs = {3: (batch, target, source), 4: (batch, num_heads, target, source)}
    _require_mask("attention_mask", attention_mask, pairs)


def _require_mask(name: str, mask: Any, sizes_by_rank: dict[int, tuple]) -> None:
    if mask is None:
        return
    shape = _shape(mask)
    require(
        len(shape) in sizes_by_rank,
        f"`{name}` must have rank {' or '.join(map(str, sizes_by_rank))}.",
        **{f"{name}_shape": shape},
    )
    dtype = getattr(mask, "dtype", None) or np.asarray(mask).dtype
    dtype = keras.backend.standardize_dtype(dtype)
    require(
        not keras.backend.is_float_dtype(dtype),
        f"`{name}` must be boolean, True where something may be attended to: nothing is added to "
        "scores.",
        dtype=dtype,
    )
    if dtype != "bool":
        others = np.setdiff1d(_known_values(mask), (0, 1))
        require(
            not others.size,
            f"`{name}` must hold 1 (True) where something may be attended to, and 0 elsewhere.",
            **{name: others[:3].tolist()},
        )
    sizes = dict(enumerate(sizes_by_rank[len(shape)]))
    _require_sizes(name, mask, sizes, or_one=True)


def _known_values(x: Any) -> np.ndarray:
    """The values of a tensor; none while a graph is traced, where it has none yet."""
    try:
        return np.asarray(x)
    except (TypeError, ValueError, NotImplementedError):
        return np.empty(0)


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
