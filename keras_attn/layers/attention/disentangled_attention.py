"""Disentangled attention, as in DeBERTa."""

import keras
from keras import ops

from keras_attn.layers.attention.head_projection import ROLES, HeadProjection
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.positions.distance_vectors import DistanceVectors
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.linear import linear_of_heads
from keras_attn.ops.positions import relative_shift
from keras_attn.validation import require

_ROLES = {"position_to_content": "query", "content_to_position": "key"}


@keras.saving.register_keras_serializable(package="keras_attn")
class DisentangledAttention(MultiHeadAttention):
    """Self-attention whose scores compare contents with contents, and contents with distances.

    A vector r is learned for each distance between query and key. A score is the sum of
    query_i · key_j, of query_i · (r W_key) and of key_j · (r W_query), r for the distance i - j,
    by the square root of `key_dim` times the number of these parts.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        num_buckets: Number of vectors of distances on each side: half of them are for one distance
            each, the others for ranges that grow logarithmically. `None` for one for each distance.
        max_distance: From where on all distances share the last vector.
        kinds: The parts of the scores besides that of contents: "content_to_position" and
            "position_to_content", or one of them.
        share_projections: Whether vectors of distances are projected as contents are; otherwise
            they have projections of their own.
        epsilon: Added to the variance where vectors of distances are normalized; `None` where they
            are not.
        **kwargs: Further arguments of `MultiHeadAttention`.

    Returns:
        The output (batch, length, features), and with `return_attention_scores` the
        probabilities (batch, num_heads, length, length).

    Raises:
        UserError: A size is not positive, `dropout` is outside [0, 1), there is no such kind, or
            buckets reach beyond `max_distance`.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> DisentangledAttention(2, 4, num_buckets=4, max_distance=16)(x, x).shape
        (2, 5, 8)

    References:
        He et al., 2021, https://arxiv.org/abs/2006.03654, section 3.1.
        He et al., 2023, https://arxiv.org/abs/2111.09543 (shared projections, buckets).
    """

    can_cross = False
    fixed_arguments = (
        "attention_axes",
        "flash_attention",
        "num_key_value_heads",
        "relative_positions",
        "sliding_window",
        "use_gate",
    )

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_buckets: int | None = 256,
        max_distance: int = 512,
        kinds: tuple[str, ...] = tuple(_ROLES),
        share_projections: bool = True,
        epsilon: float | None = 1e-7,
        **kwargs,
    ):
        vectors = DistanceVectors(num_buckets, max_distance, epsilon)
        super().__init__(num_heads, key_dim, relative_positions=vectors, **kwargs)
        kinds = tuple(kinds)
        require(
            bool(kinds) and set(kinds) <= set(_ROLES),
            f"`kinds` must be {' and '.join(_ROLES)}, or one of them.",
            kinds=kinds,
        )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.kinds = kinds
        self.share_projections = share_projections
        self.epsilon = epsilon

    def build(self, query_shape, value_shape=None, key_shape=None):
        if not self.relative_positions.built:
            self.relative_positions.build(query_shape)
        super().build(query_shape, value_shape, key_shape)
        self.distance_projection = None
        if not self.share_projections:
            heads = dict.fromkeys(self._roles(), (self.num_heads, self.key_dim))
            self.distance_projection = HeadProjection(
                heads,
                kernel_initializer=separate_initializer(self.kernel_initializer, len(ROLES) + 1),
                name="distance_" + "_".join(heads),
                **self._shared_options(),
            )
            self.distance_projection.build(query_shape)

    def _roles(self) -> list[str]:
        """As what the vectors of distances are projected."""
        return [role for kind, role in _ROLES.items() if kind in self.kinds]

    def _attend_heads(self, heads, *arguments, **options):
        query = heads["query"]
        query = query * ops.cast((1 + len(self.kinds)) ** -0.5, query.dtype)
        return super()._attend_heads(heads | {"query": query}, *arguments, **options)

    def _position_bias(self, query, key, at_query, at_key):
        dtype = computing_dtype(query.dtype)
        scale = (self.key_dim * (1 + len(self.kinds))) ** -0.5
        query, key = (ops.cast(x, dtype) * scale for x in (query, key))
        distances = self._distance_heads(dtype)
        if len(at_query.shape) == len(at_key.shape) == 1:
            return self._of_consecutive(query, key, at_query, at_key, distances)
        apart = ops.expand_dims(at_query, -1) - ops.expand_dims(at_key, -2)  # (…, target, source)
        rows = self.relative_positions.rows(apart)
        bias = 0.0
        if "key" in distances:
            vectors = ops.moveaxis(ops.take(distances["key"], rows, axis=1), 0, 1)
            bias += ops.sum(ops.expand_dims(query, 3) * vectors, axis=-1)
        if "query" in distances:
            vectors = ops.moveaxis(ops.take(distances["query"], rows, axis=1), 0, 1)
            bias += ops.sum(ops.expand_dims(key, 2) * vectors, axis=-1)
        return bias

    def _of_consecutive(self, query, key, at_query, at_key, distances):
        """Products with the vectors of all distances, shifted row by row."""
        target, source = ops.shape(query)[2], ops.shape(key)[2]
        count = target + source - 1
        count = max(count, 0) if isinstance(count, int) else ops.maximum(count, 0)
        # Sums of one position each, or of none where the sequence is empty.
        least = ops.sum(at_query[:1]) - ops.sum(at_key[-1:])
        rows = self.relative_positions.rows(least + ops.arange(count, dtype="int32"))
        bias = 0.0
        if "key" in distances:
            vectors = ops.take(distances["key"], ops.flip(rows, 0), axis=1)
            bias += relative_shift(linear_of_heads(query, ops.swapaxes(vectors, 1, 2)), source)
        if "query" in distances:
            vectors = ops.take(distances["query"], rows, axis=1)
            by_key = relative_shift(linear_of_heads(key, ops.swapaxes(vectors, 1, 2)), target)
            bias += ops.swapaxes(by_key, 2, 3)
        return bias

    def _distance_heads(self, dtype) -> dict:
        """Heads (num_heads, rows, key_dim) of the vectors of distances, by role."""
        vectors = ops.expand_dims(self.relative_positions(), 0)
        found = {}
        for role in self._roles():
            own = self.distance_projection
            (projection,) = [own] if own else [p for p in self.projections if role in p.heads]
            found[role] = ops.cast(projection(vectors, roles=(role,))[0][0], dtype)
        return found
