"""Attention by locality-sensitive hashing, as in "Reformer"."""

from functools import partial

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.decoding.cache import initial_cache
from keras_attn.ops.decoding.lsh_steps import LSHState, lsh_attention_step, lsh_state
from keras_attn.ops.hash_rounds import hash_buckets
from keras_attn.ops.lsh_attention import lsh_attention
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class LSHAttention(DecodingSteps, BaseMultiHeadAttention):
    """Multi-head self-attention of each position to those whose vectors hash to the same bucket.

    Queries are keys as well, at length 1, and scores their products, not divided by the root of
    `key_dim` besides, as in the authors' program. In each round of hashing, positions are sorted by
    bucket and cut into chunks; each attends to those of its bucket in its chunk and the one before,
    to itself only if there is none else. Time and memory grow with length times logarithm of the
    length, beside the products of hashing, which grow with length times buckets. The random
    rotations are weights that are not trained, so that a saved layer hashes as before. Padding
    moves nothing. Causally, and so in decoding, a position attends to the last `chunk_length` ones
    of its bucket before it, for chunks depend on what follows.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's shared query and key.
        num_buckets: Number of buckets, even; in the paper twice the length by the chunk's.
        num_hashes: Number of rounds: more find more of what dense attention would.
        chunk_length: Number of positions in a chunk.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the rotations and of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        key: Not used.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all positions may attend to one.
        return_attention_scores: Must be `False`.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, `num_buckets` is odd, `dropout` is outside [0, 1),
            lengths differ, scores are asked for, or an `attention_mask` differs between positions.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> LSHAttention(2, 4, num_buckets=2, chunk_length=4)(x, x).shape
        (2, 5, 8)

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451, section 2.
    """

    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_buckets: int,
        num_hashes: int = 4,
        chunk_length: int = 64,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(num_buckets=num_buckets, num_hashes=num_hashes, chunk_length=chunk_length)
        require(num_buckets % 2 == 0, "`num_buckets` must be even.", num_buckets=num_buckets)
        self.num_buckets = num_buckets
        self.num_hashes = num_hashes
        self.chunk_length = chunk_length
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.rotations = self.add_weight(
            name="rotations",
            shape=(self.num_heads, self.key_dim, self.num_hashes, self.num_buckets // 2),
            initializer=keras.initializers.RandomNormal(stddev=1.0, seed=self.seed),
            trainable=False,
            autocast=False,
        )

    def _head_sizes(self):
        sizes = super()._head_sizes()
        return {role: sizes[role] for role in ("query", "value")}

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        query, value, _ = inputs.visible(self.compute_dtype)
        heads = self._project(query, value, None, training)
        real = inputs.mask_of_keys()
        attend = partial(
            lsh_attention,
            heads["query"],
            rotations=self.rotations,
            chunk_length=self.chunk_length,
            real=real,
            is_causal=use_causal_mask,
        )
        recorded = {"pattern": partial(self._pattern, heads["query"]), "is_causal": use_causal_mask}
        options = (inputs.query_mask, training, self._dropping(training))
        return self._attend_by_keys(attend, heads["value"], real, *options, **recorded)

    def _pattern(self, query) -> dict:
        """The bucket of each position in each round, int32 (batch, heads, rounds, length)."""
        query = ops.cast(query, computing_dtype(query.dtype))
        return {"buckets": hash_buckets(query, self.rotations), "chunk": self.chunk_length}

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        widths = (self.key_dim, self.value_dim)
        cache = initial_cache(batch_size, self.num_heads, widths, self.compute_dtype, max_length)
        rounds = ops.zeros((1, 1, 1, self.num_hashes), dtype="int32")
        buckets = ops.zeros_like(cache.key[..., :1], dtype="int32") * rounds
        return LSHState(cache, buckets)

    def attend_prompt(self, query, cache, real):
        heads = self._project_prompt(query, real)
        vectors = (heads["query"], heads["value"])
        context = lsh_attention(*vectors, self.rotations, self.chunk_length, is_causal=True)
        state = lsh_state(*vectors, cache, real, self.rotations)
        return self._project_back(context), state

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project_hypotheses(query)
        context, cache = lsh_attention_step(
            heads["query"], heads["value"], cache, index, self.rotations, self.chunk_length
        )
        return self._project_back_hypotheses(context, query.shape[1]), cache
