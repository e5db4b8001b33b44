"""Inputs of an attention layer, checked as far as their shapes are known."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn.layers.hidden_positions import visible_inputs
from keras_attn.ops import masks
from keras_attn.validation import require


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
        for name, x in zip(self._fields[:3], self[:3], strict=True):
            require(
                x is None or len(_shape(x)) == 3,
                f"`{name}` must be (batch, length, features).",
                **{f"{name}_shape": None if x is None else _shape(x)},
            )
        batch, target = self.query.shape[:2]
        source = self.value.shape[1]
        _require_sizes("value", self.value, {0: batch} | ({1: target} if same_length else {}))
        if self.key is not None:
            _require_sizes("key", self.key, {0: batch, 1: source})
        pairs = (batch, num_heads, target, source)
        _require_mask("query_mask", self.query_mask, {2: (batch, target)})
        _require_mask("value_mask", self.value_mask, {2: (batch, source)})
        _require_mask("key_mask", self.key_mask, {2: (batch, source)})
        _require_mask(
            "attention_mask", self.attention_mask, {2: pairs[2:], 3: (batch, *pairs[2:]), 4: pairs}
        )

    def with_boolean_masks(self) -> tuple["AttentionInputs", Any]:
        """Reads the masks: see `keras_attn.ops.masks.boolean_masks`.

        Returns:
            The inputs with boolean masks, and what `keras_attn.ops.masks.unless_refused` takes.
        """
        *given, valid = masks.boolean_masks(**dict(zip(self._fields[3:], self[3:], strict=True)))
        return AttentionInputs(*self[:3], *given), valid

    def visible(self, dtype: str) -> tuple[Any, Any, Any]:
        """Query, value and key without what masks hide: see `visible_inputs`."""
        return visible_inputs(dtype, *self)

    def pair_masks(self) -> tuple:
        """Masks of rank 4, for (batch, heads, target, source); all must allow a pair."""
        return masks.separate_masks(*self[3:])

    def mask_of_keys(self) -> Any:
        """The mask (batch or 1, heads or 1, source) of keys that are hidden from all queries."""
        return masks.mask_of_keys(ops.shape(self.value)[1], *self[4:])


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
