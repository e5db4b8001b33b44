"""Inputs of an attention layer, checked as far as their shapes are known."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn.layers.hidden_positions import as_float, without_hidden
from keras_attn.ops import masks
from keras_attn.tensors import Tensor
from keras_attn.validation import require

_LARGEST_QUERY = 2.0**56


class AttentionInputs(NamedTuple):
    """The tensors that a call of an attention layer is given; `None` for those left out.

    Attributes:
        query: Tensor (batch, target, features).
        value: Tensor (batch, source, features).
        key: Tensor (batch, source, features); the value by default.
        query_mask: Mask (batch, target).
        value_mask: Mask (batch, source).
        key_mask: Mask (batch, source).
        attention_mask: Mask (target, source), (batch, target, source) or
            (batch, heads, target, source). In masks an axis of 1 is for all.
    """

    query: Any
    value: Any
    key: Any = None
    query_mask: Any = None
    value_mask: Any = None
    key_mask: Any = None
    attention_mask: Any = None

    def require_fitting(self, num_heads: int = 1, same_length: bool = False) -> None:
        """Raises unless queries, keys, values and masks fit together, as far as sizes are known.

        Args:
            num_heads: Number of the mechanism's heads.
            same_length: Whether target and source must have the same length, as where a mechanism
                attends within one sequence.

        Raises:
            UserError: An input or a mask has another rank, or a size differs.
        """
        shapes = {name: None if x is None else _shape(x) for name, x in self._asdict().items()}
        for name in self._fields[:3]:
            require(
                shapes[name] is None or len(shapes[name]) == 3,
                f"`{name}` must be (batch, length, features).",
                **{f"{name}_shape": shapes[name]},
            )
        batch, target, _ = shapes["query"]
        source = shapes["value"][1]
        pairs = (batch, num_heads, target, source)
        expected = {
            "value": [(batch, target if same_length else source, None)],
            "key": [(batch, source, None)],
            "query_mask": [(batch, target)],
            "value_mask": [(batch, source)],
            "key_mask": [(batch, source)],
            "attention_mask": [pairs[2:], (batch, *pairs[2:]), pairs],
        }
        for name, of_each_rank in expected.items():
            if shapes[name] is not None:
                _require_shape(name, shapes[name], {len(one): one for one in of_each_rank})

    def with_boolean_masks(self) -> tuple["AttentionInputs", Any]:
        """Reads the masks: see `keras_attn.ops.masks.boolean_masks`.

        Returns:
            The inputs with boolean masks, and what `keras_attn.ops.masks.unless_refused` takes.
        """
        *given, valid = masks.boolean_masks(**dict(zip(self._fields[3:], self[3:], strict=True)))
        return AttentionInputs(*self[:3], *given), valid

    def visible(self, dtype: str) -> tuple[Any, Any, Any]:
        """Gives query, value and key as floats, and zeros at positions that are hidden.

        Keys and values are hidden by their masks and by an `attention_mask` that hides them from
        every query, queries by `query_mask`; the masks must be boolean. A tensor in both roles
        stays one tensor. What it holds at a key that is hidden is still a query where `query_mask`
        does not hide that: there its numbers are kept, which no real query sees, unless one is NaN
        or their sizes add up to 2^56, where products could become NaN. Such a vector is 0.

        Args:
            dtype: Dtype that the mechanism computes in.
        """
        real_keys = masks.combine_masks(
            self.value_mask, self.key_mask, _seen_by_any(self.attention_mask)
        )
        sources = [id(x) for x in self[1:3] if x is not None]
        prepared = {id(None): None}
        for x in self[:3]:
            if id(x) in prepared:
                continue
            real = real_keys if id(x) in sources else self.query_mask
            floats = as_float(x, dtype)
            if x is self.query and real is not None and real is not self.query_mask:
                prepared[id(x)] = _visible_or_finite_query(floats, real, self.query_mask)
            else:
                prepared[id(x)] = without_hidden(floats, real)
        return tuple(prepared[id(x)] for x in self[:3])

    def pair_masks(self) -> tuple:
        """Masks of rank 4, for (batch, heads, target, source); all must allow a pair."""
        return masks.separate_masks(*self[3:])

    def mask_of_keys(self) -> Any:
        """The mask (batch or 1, heads or 1, source) of keys that are hidden from all queries."""
        return masks.mask_of_keys(ops.shape(self.value)[1], *self[4:])

    def mask_of_positions(self) -> Any:
        """The mask (batch or 1, source) of keys that are hidden from all queries of all heads.

        Raises:
            UserError: An `attention_mask` differs between queries or heads.
        """
        mask = self.mask_of_keys()
        if mask is None:
            return None
        require(
            mask.shape[1] == 1,
            "An `attention_mask` must be one for all heads: it must not differ by head.",
            shape=tuple(mask.shape),
        )
        return mask[:, 0]


def _require_shape(name: str, shape: tuple, by_rank: dict[int, tuple]) -> None:
    """Raises where the rank or a known size is another; in a mask a size of 1 is for all."""
    named = {f"{name}_shape": shape}
    ranks = " or ".join(map(str, by_rank))
    require(len(shape) in by_rank, f"`{name}` must have rank {ranks}.", **named)
    expected = by_rank[len(shape)]
    of_any = (None, 1) if name.endswith("mask") else (None,)
    require(
        all(
            size is None or given in (*of_any, size)
            for given, size in zip(shape, expected, strict=True)
        ),
        f"`{name}` does not fit the other inputs.",
        **named,
        expected=expected,
    )


def _shape(x: Tensor) -> tuple:
    """The known sizes; lists have some too."""
    return tuple(x.shape if hasattr(x, "shape") else np.shape(x))


def _visible_or_finite_query(x: Tensor, visible: Any, query_mask: Tensor) -> Any:
    # By the vector: each further operation over all numbers costs a small layer 2% of its time. The
    # sum is NaN where a number is, and NaN is not below anything.
    kept = ops.less(ops.sum(ops.absolute(ops.cast(x, "float32")), axis=-1), _LARGEST_QUERY)
    return without_hidden(x, ops.logical_or(visible, masks.combine_masks(kept, query_mask)))


def _seen_by_any(attention_mask: Tensor) -> Any:
    """Marks the keys that some query may attend to.

    Args:
        attention_mask: Boolean (target, source), (batch, target, source) or
            (batch, heads or 1, target, source), or `None`.

    Returns:
        Boolean (batch or 1, source), or `None`.
    """
    if attention_mask is None:
        return None
    if len(attention_mask.shape) == 2:
        attention_mask = ops.expand_dims(attention_mask, 0)
    return ops.any(attention_mask, axis=tuple(range(1, len(attention_mask.shape) - 1)))
