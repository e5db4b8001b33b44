"""Attention over chosen axes: these become one length, the others join the batch."""

import dataclasses
import math
from typing import Any

from keras import ops

from keras_attn.layers.attention.attention_inputs import AttentionInputs
from keras_attn.tensors import Tensor
from keras_attn.validation import require


@dataclasses.dataclass(frozen=True)
class AttendedAxes:
    """The axes of an input (batch, ..., features) that are attended over.

    Attributes:
        axes: The attended axes, counted from 0, in the order in which they are folded.
        rank: Number of axes of the input.
    """

    axes: tuple[int, ...]
    rank: int

    @classmethod
    def of(cls, attention_axes: int | tuple[int, ...] | None, rank: int) -> "AttendedAxes":
        """Reads the `attention_axes` of a layer.

        Args:
            attention_axes: One axis or several, negative ones counted from the end; `None` for all
                between batch and features.
            rank: Number of axes of the input.

        Returns:
            The axes.

        Raises:
            UserError: The input has no length axis, or an axis is named that lies outside.
        """
        require(rank >= 3, "Attention needs inputs (batch, length, features).", rank=rank)
        if attention_axes is None:
            return cls(tuple(range(1, rank - 1)), rank)
        named = (attention_axes,) if isinstance(attention_axes, int) else tuple(attention_axes)
        axes = tuple(axis + rank if axis < 0 else axis for axis in named)
        require(
            len(set(axes)) == len(axes) > 0 and all(0 < axis < rank - 1 for axis in axes),
            "`attention_axes` must name axes between batch and features.",
            attention_axes=attention_axes,
            rank=rank,
        )
        return cls(axes, rank)

    @property
    def others(self) -> tuple[int, ...]:
        """The axes between batch and features that are not attended over."""
        return tuple(axis for axis in range(1, self.rank - 1) if axis not in self.axes)

    @property
    def is_plain(self) -> bool:
        """Whether inputs are (batch, length, features) already."""
        return self.rank == 3

    def fold(self, inputs: Any) -> Any:
        """Folds an input.

        Args:
            inputs: Tensor (batch, ..., features).

        Returns:
            Tensor (batch * other sizes, product of the attended sizes, features).
        """
        order = (0, *self.others, *self.axes, self.rank - 1)
        x = ops.transpose(inputs, order)
        sizes = ops.shape(x)
        cut = 1 + len(self.others)
        return ops.reshape(x, (math.prod(sizes[:cut]), math.prod(sizes[cut:-1]), sizes[-1]))

    def unfold(self, outputs: Tensor, inputs: Tensor) -> Any:
        """Undoes `fold` for what an attention over the folded input gave.

        Args:
            outputs: Tensor (batch * other sizes, product of the attended sizes, ...).
            inputs: The input, (batch, ..., features).

        Returns:
            Tensor (batch, ..., *further sizes of the outputs), the axes ordered as in the input.
        """
        sizes = ops.shape(inputs)
        order = (0, *self.others, *self.axes)
        further = ops.shape(outputs)[2:]
        x = ops.reshape(outputs, (*(sizes[axis] for axis in order), *further))
        back = tuple(order.index(axis) for axis in range(self.rank - 1))
        return ops.transpose(x, (*back, *range(self.rank - 1, self.rank - 1 + len(further))))

    def fold_mask(self, name: str, mask: Tensor) -> Any:
        """Folds a mask over the positions of an input.

        Args:
            name: Name of the mask in errors.
            mask: Boolean tensor (batch, ...), the input's shape without the features, or `None`.

        Returns:
            Boolean tensor (batch * other sizes, product of the attended sizes), or `None`.

        Raises:
            UserError: The mask has another rank.
        """
        if mask is None:
            return None
        require(
            len(mask.shape) == self.rank - 1,
            f"`{name}` must have the shape of its input without the features.",
            shape=tuple(mask.shape),
            input_rank=self.rank,
        )
        return self.fold(ops.expand_dims(mask, -1))[..., 0]

    def fold_attention_mask(self, mask: Tensor, query: Tensor, value: Tensor) -> Any:
        """Folds a mask over pairs of positions.

        Args:
            mask: Boolean tensor (batch, other sizes, heads or 1, *attended sizes of the query,
                *attended sizes of the value), or `None`. The heads, the other sizes from the last
                one on and the batch may be left out.
            query: Tensor (batch, ..., features).
            value: Tensor (batch, ..., features), of the same rank.

        Returns:
            Boolean tensor (batch * other sizes, heads or 1, target, source), or `None`.

        Raises:
            UserError: The mask has another rank.
        """
        if mask is None:
            return None
        pairs = 2 * len(self.axes)
        leading = 2 + len(self.others)  # batch, others, heads
        given = len(mask.shape) - pairs
        require(
            0 <= given <= leading,
            "`attention_mask` must be (batch, other axes, heads, target axes, source axes); "
            "heads, other axes and batch may be left out.",
            shape=tuple(mask.shape),
            attention_axes=self.axes,
        )
        for _ in range(leading - given):
            mask = ops.expand_dims(mask, -pairs - 1)
        heads = ops.shape(mask)[leading - 1]
        sizes = self.scores_shape(ops.shape(query), ops.shape(value), heads)
        target, source = sizes[leading : -len(self.axes)], sizes[-len(self.axes) :]
        folded = (math.prod(sizes[: leading - 1]), heads, math.prod(target), math.prod(source))
        return ops.reshape(ops.broadcast_to(mask, sizes), folded)

    def fold_inputs(self, inputs: AttentionInputs) -> AttentionInputs:
        """Folds all inputs and masks of a call; plain ones stay as they are."""
        if self.is_plain:
            return inputs
        # An input in two roles stays one tensor, so that they share a matrix product.
        folded = {id(x): self.fold(x) for x in inputs[:3] if x is not None}
        query, value, key = (None if x is None else folded[id(x)] for x in inputs[:3])
        names = ("query_mask", "value_mask", "key_mask")
        given = (self.fold_mask(name, getattr(inputs, name)) for name in names)
        pairs = self.fold_attention_mask(inputs.attention_mask, inputs.query, inputs.value)
        return AttentionInputs(query, value, key, *given, pairs)

    def unfold_result(self, result: Any, inputs: AttentionInputs) -> Any:
        """Undoes `fold_inputs` for an output, or for an output and attention scores."""
        if self.is_plain:
            return result
        if not isinstance(result, tuple):
            return self.unfold(result, inputs.query)
        output, scores = result
        query, value = inputs[:2]
        shape = self.scores_shape(ops.shape(query), ops.shape(value), scores.shape[1])
        return self.unfold(output, query), ops.reshape(scores, shape)

    def scores_shape(self, query_shape: Any, value_shape: Any, num_heads: int) -> tuple:
        """Gives the shape of attention scores.

        Args:
            query_shape: Shape of the query.
            value_shape: Shape of the value.
            num_heads: Number of heads.

        Returns:
            (batch, other sizes, heads, *attended sizes of the query, *those of the value).
        """
        batch = [query_shape[axis] for axis in (0, *self.others)]
        target = [query_shape[axis] for axis in self.axes]
        source = [value_shape[axis] for axis in self.axes]
        return (*batch, num_heads, *target, *source)
