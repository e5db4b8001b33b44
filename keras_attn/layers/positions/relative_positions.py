"""Base classes of relative positions."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.composite_layer import CompositeLayer
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.validation import require, require_positive


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
        self, query: Any, key: Any, query_positions: Any, key_positions: Any
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

    def bias(self, query: Any, query_positions: Any, key_positions: Any) -> Any:
        """What is added to the scaled scores.

        Args:
            query: Tensor (batch, heads, target, key_dim), before `transform`.
            query_positions: int32 (target,) or (batch or 1, target).
            key_positions: int32 (source,) or (batch or 1, source).

        Returns:
            float32 or wider (batch or 1, heads, target, source); `None` for nothing.
        """
        return None


class DistanceBias(RelativePositions):
    """Adds to scores what follows from head and distance alone.

    Args:
        num_heads: Number of query heads.
        **kwargs: Arguments of `keras.layers.Layer`.
    """

    adds_bias = True

    def __init__(self, num_heads: int, **kwargs):
        super().__init__(**kwargs)
        require_positive(num_heads=num_heads)
        self.num_heads = num_heads

    def of_distances(self, distances: Any) -> Any:
        """The bias by distance.

        Args:
            distances: int32 (batch or 1, target, source), the key's position minus the query's.

        Returns:
            float32 or wider (batch or 1, target, source, num_heads).
        """
        raise NotImplementedError

    def bias(self, query, query_positions, key_positions):
        distances = ops.expand_dims(key_positions, -2) - ops.expand_dims(query_positions, -1)
        if len(distances.shape) == 2:
            distances = ops.expand_dims(distances, 0)
        return ops.transpose(self.of_distances(distances), (0, 3, 1, 2))

    def call(self, query_positions, key_positions=None):
        if key_positions is None:
            key_positions = query_positions
        return ops.cast(self.bias(None, query_positions, key_positions), self.compute_dtype)

    def compute_output_spec(self, query_positions, key_positions=None):
        if key_positions is None:
            key_positions = query_positions
        shape = (query_positions.shape[0], self.num_heads)
        lengths = (query_positions.shape[1], key_positions.shape[1])
        return keras.KerasTensor((*shape, *lengths), self.compute_dtype)


def copy_positions(
    layer: Any, num_heads: int, key_dim: int, dtype_policy: Any
) -> RelativePositions | None:
    """An attention layer's own copy of the relative positions that it was given.

    Args:
        layer: The `relative_positions`, or `None`.
        num_heads: Number of the attention's query heads.
        key_dim: Size of each head's query and key.
        dtype_policy: The attention's.

    Raises:
        UserError: It is no relative positions, or for other heads.
    """
    if layer is None:
        return None
    require(
        isinstance(layer, RelativePositions),
        "`relative_positions` must be a RotaryEmbedding, RelativePositionBias, AlibiBias, "
        "TransformerXLPositions or another layer of RelativePositions; positions that are added to "
        "inputs go before the attention.",
        relative_positions=type(layer).__name__,
    )
    require(
        layer.num_heads in (None, num_heads),
        "`relative_positions` must have as many heads as the attention.",
        relative_positions_num_heads=layer.num_heads,
        num_heads=num_heads,
    )
    layer.require_key_dim(key_dim)
    return copy_layer(layer, "relative_positions", dtype=dtype_policy)


def refuse_relative_positions(attention: keras.layers.Layer, arguments: dict) -> dict:
    """Arguments of a mechanism that has no use for relative positions.

    Args:
        attention: The attention layer.
        arguments: What its constructor passes on.

    Returns:
        The arguments without `relative_positions`.

    Raises:
        UserError: Some are given.
    """
    relative = arguments.get("relative_positions")
    require(
        relative is None,
        f"{type(attention).__name__} does not take `relative_positions`: add positions to its "
        "inputs, as SinusoidalPositionEncoding and LearnedPositionEmbedding do.",
        relative_positions=type(relative).__name__,
    )
    return {name: value for name, value in arguments.items() if name != "relative_positions"}
