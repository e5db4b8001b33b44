"""Linear attention whose memory decays as the inputs say."""

import keras
import numpy as np
from keras import ops

from keras_attn.layers.attention.recurrent_state_base import (
    BaseRecurrentStateAttention,
    in_reverse,
    of_positions,
)
from keras_attn.layers.dense import Dense, built_dense
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.heads import split_heads
from keras_attn.ops.running_sums import STRONGEST_DECAY, running_sums
from keras_attn.validation import require, require_positive

_FIRST_BIASES = (0.0, 6.0)  # of the first and of the last feature of a head


@keras.saving.register_keras_serializable(package="keras_attn")
class GatedLinearAttention(BaseRecurrentStateAttention):
    """Self-attention by a sum over keys and values that decays by gates computed from the inputs.

    Each head keeps a matrix S_i = diag(a_i) S_{i-1} + key_iᵀ value_i, which query_i reads. The
    decays a_i, one for each feature of the key, are sigmoids to the power of 1 / `temperature`.
    Their biases begin between 0 and 6, so that at first features forget half within 16 to 4,500
    positions (at a `temperature` of 16): if all of them forget soon, nothing from far away
    remains to learn from. There is no softmax and no divisor: what a head reads is divided
    by the root of its mean square, and multiplied by an output gate. Time and memory are linear in
    the length, and decoding needs a state of constant size.

    Without `use_causal_mask` keys after a query count too, decayed by the gates between them; the
    query's own key counts once.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        decay_rank: Number of features between the two projections that decays are computed by.
        temperature: The larger, the slower the memory decays.
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
        >>> GatedLinearAttention(2, 4)(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    Reference:
        Yang et al., 2023, https://arxiv.org/abs/2312.06635, sections 3 and 4.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        decay_rank: int = 16,
        temperature: float = 16.0,
        use_gate: bool = True,
        epsilon: float = 1e-5,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, use_gate, epsilon, **kwargs)
        require_positive(decay_rank=decay_rank)
        require(temperature > 0, "`temperature` must be positive.", temperature=temperature)
        self.decay_rank = decay_rank
        self.temperature = temperature

    def _build_changes(self, features):
        narrow, wide = (
            {
                "kernel_initializer": separate_initializer(self.kernel_initializer, offset),
                "dtype": self.dtype_policy,
            }
            for offset in (5, 6)
        )
        self.decay_narrow = built_dense(features, self.decay_rank, name="decay_narrow", **narrow)
        biases = np.tile(np.linspace(*_FIRST_BIASES, self.key_dim), self.num_heads)
        wide["bias_initializer"] = keras.initializers.Constant(biases.tolist())
        self.decay_wide = Dense(self.num_heads * self.key_dim, name="decay_wide", **wide)
        self.decay_wide.build((None, self.decay_rank))

    def _changes(self, heads, key, mask):
        dtype = computing_dtype(self.compute_dtype)
        logits = self.decay_wide(self.decay_narrow(ops.cast(key, self.compute_dtype)))
        (logits,) = split_heads(ops.cast(logits, dtype), 1, self.num_heads)
        decay = ops.maximum(ops.log_sigmoid(logits) / self.temperature, STRONGEST_DECAY)
        return {
            "query": ops.cast(heads["query"], dtype) * self.key_dim**-0.5,
            "key": of_positions(ops.cast(heads["key"], dtype), mask),
            "log_decay": of_positions(decay, mask),
        }

    def _read(self, value, is_causal, changes):
        value = ops.cast(value, changes["key"].dtype)
        found, last = running_sums(value=value, **changes)
        if is_causal:
            return found, last
        following, _ = running_sums(**in_reverse(changes | {"value": value}))
        own = ops.sum(changes["query"] * changes["key"], axis=-1, keepdims=True) * value
        return found + ops.flip(following, axis=2) - own, last

    def _step(self, value, state, changes):
        decay = ops.exp(ops.swapaxes(changes["log_decay"], -1, -2))
        state = state * decay + ops.matmul(
            ops.swapaxes(changes["key"], -1, -2), ops.cast(value, state.dtype)
        )
        return ops.matmul(changes["query"], state), state
