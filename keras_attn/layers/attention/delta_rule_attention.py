"""Linear attention that corrects its memory: the delta rule."""

import keras
from keras import ops

from keras_attn.layers.attention.recurrent_state_base import (
    BaseRecurrentStateAttention,
    in_reverse,
    of_positions,
)
from keras_attn.layers.dense import built_dense
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.delta_rule import delta_rule, delta_rule_step
from keras_attn.ops.lsh_attention import unit_vectors


@keras.saving.register_keras_serializable(package="keras_attn")
class DeltaRuleAttention(BaseRecurrentStateAttention):
    """Self-attention by a memory in which a key's new value replaces what was stored for it.

    Each head keeps a matrix S_i = S_{i-1} + β_i key_iᵀ (value_i - key_i S_{i-1}), which query_i
    reads: instead of adding up all values of similar keys, as linear attention does, it corrects
    what it would read by the key. Rates β are sigmoids of the inputs; queries and keys are x ·
    sigmoid(x), at length 1. What a head reads is divided by the root of its mean square. Time and
    memory are linear in the length, and decoding needs a state of constant size.

    Without `use_causal_mask` the sequence is read from both ends, and the sum is taken.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key; a head can distinguish at most as many keys.
        use_gate: Whether a gate computed from the query, x · sigmoid(x), multiplies what is read.
        epsilon: Added to the mean square.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, lengths differ, scores are asked for, or an
            `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> DeltaRuleAttention(2, 4)(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    References:
        Schlag et al., 2021, https://arxiv.org/abs/2102.11174, section 4.
        Yang et al., 2024, https://arxiv.org/abs/2406.06484, sections 2.2 and 3.
    """

    def __init__(
        self, num_heads: int, key_dim: int, use_gate: bool = False, epsilon: float = 1e-5, **kwargs
    ):
        super().__init__(num_heads, key_dim, use_gate, epsilon, **kwargs)

    def _build_changes(self, features):
        initializer = separate_initializer(self.kernel_initializer, 5)
        options = {"kernel_initializer": initializer, "dtype": self.dtype_policy}
        self.rate = built_dense(features, self.num_heads, name="rate", **options)

    def _changes(self, heads, key, mask):
        dtype = computing_dtype(self.compute_dtype)
        rate = ops.cast(self.rate(ops.cast(key, self.compute_dtype)), dtype)
        rate = ops.expand_dims(ops.swapaxes(ops.sigmoid(rate), 1, 2), -1)
        query, key = (ops.cast(heads[role], dtype) for role in ("query", "key"))
        return {
            "query": unit_vectors(ops.silu(query)),
            "key": of_positions(unit_vectors(ops.silu(key)), mask),
            "rate": of_positions(rate, mask),
        }

    def _read(self, value, is_causal, changes):
        found, last = delta_rule(value=value, **changes)
        if is_causal:
            return found, last
        following, _ = delta_rule(**in_reverse(changes | {"value": value}))
        return found + ops.flip(following, axis=2), last

    def _step(self, value, state, changes):
        return delta_rule_step(value=value, memory=state, **changes)
