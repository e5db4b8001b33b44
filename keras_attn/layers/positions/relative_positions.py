"""Base class of relative positions."""

from typing import Any

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.tensors import Tensor


class RelativePositions(CompositeLayer):
    """Changes queries and keys, or adds to scores, by the positions of query and key.

    Given to an attention layer as `relative_positions`. It is built for the shape of the queries,
    (batch, heads, target, key_dim).
    """

    supports_masking = False

    num_heads: int | None = None
    """Number of query heads that it is made for; `None` for any."""

    adds_bias = False
    """Whether `bias` gives anything, which mechanisms without scores cannot use."""

    def require_key_dim(self, key_dim: int) -> None:
        """Raises unless queries and keys may have a size.

        Args:
            key_dim: Size of each head's query and key.

        Raises:
            UserError: It is made for others.
        """

    def transform(
        self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Any, Any]:
        """Queries and keys as they are to be compared.

        Args:
            query: Tensor (batch, heads, target, key_dim).
            key: Tensor (batch, heads, source, key_dim).
            query_positions: int32 (target,) or (batch or 1, target).
            key_positions: int32 (source,) or (batch or 1, source).

        Returns:
            Both, in their shapes and dtypes.
        """
        return query, key

    def bias(self, query: Tensor, query_positions: Tensor, key_positions: Tensor) -> Any:
        """What is added to the scaled scores.

        Args:
            query: Tensor (batch, heads, target, key_dim), before `transform`.
            query_positions: int32 (target,) or (batch or 1, target).
            key_positions: int32 (source,) or (batch or 1, source).

        Returns:
            float32 or wider (batch or 1, heads, target, source); `None` for nothing.
        """
        return None
