"""Names for tensors of any Keras backend, for annotations."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any
"""A tensor of the current Keras backend, or a symbolic `keras.KerasTensor`.

The backends have no type in common, so a type checker takes it for `Any`.
"""

TensorLike: TypeAlias = Any
"""Anything that `keras.ops.convert_to_tensor` accepts: a tensor, an array, a number or a list."""
