"""Base of the mechanisms whose memory of earlier positions is one matrix for each head."""

from typing import Any

from keras import ops

from keras_attn.layers.attention.attention_layer import DecodingSteps
from keras_attn.layers.attention.capture import record_attention
from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops import masks
from keras_attn.ops.attention import computing_dtype
from keras_attn.tensors import Tensor
from keras_attn.validation import require


class BaseRecurrentStateAttention(DecodingSteps, BaseMultiHeadAttention):
    """Self-attention by a matrix for each head, which every position reads and changes.

    A subclass says what positions do to the matrix (`_changes`, `_read`, `_step`). What a head
    reads is divided by the root of its mean square, and multiplied by a gate.

    Without `use_causal_mask` the sequence is read in both directions, and the sum is taken.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        use_gate: Whether a gate computed from the query, x · sigmoid(x), multiplies what is read.
        epsilon: Added to the mean square.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        training: Has no effect.
    """

    can_cross = False

    def __init__(
        self, num_heads: int, key_dim: int, use_gate: bool = True, epsilon: float = 1e-5, **kwargs
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require(epsilon > 0, "`epsilon` must be positive.", epsilon=epsilon)
        self.use_gate = use_gate
        self.epsilon = epsilon

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.norm_scale = self.add_weight(
            name="norm_scale", shape=(self.value_dim,), initializer="ones", autocast=False
        )
        self._build_changes((key_shape or value_shape or query_shape)[-1])

    def _build_changes(self, features: int) -> None:
        """Creates the weights that decide about changes, for keys of that many features."""
        raise NotImplementedError

    def _changes(self, heads: dict, key: Tensor, mask: Tensor) -> dict:
        """What positions read by and what they change.

        Args:
            heads: The heads by role.
            key: Tensor (batch, length, features), the inputs that keys are projected from.
            mask: Boolean (batch or 1, heads or 1, length), `False` where a position changes
                nothing, or `None`.

        Returns:
            Tensors (batch, heads, length, …) by name.
        """
        raise NotImplementedError

    def _read(self, value: Tensor, is_causal: bool, changes: dict) -> tuple[Any, Any]:
        """What each position reads, and the matrices after the last one."""
        raise NotImplementedError

    def _step(self, value: Tensor, state: Any, changes: dict) -> tuple[Any, Any]:
        """What a single position reads, and the matrices with it."""
        raise NotImplementedError

    def _head_sizes(self):
        gate = {"gate": (self.num_heads, self.value_dim)} if self.use_gate else {}
        return super()._head_sizes() | gate

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        query, value, key = inputs.visible(self.compute_dtype)
        heads = self._project(query, value, key, training)
        mask = inputs.mask_of_keys()
        changes = self._changes(heads, value if key is None else key, mask)

        def attend(value: Tensor) -> Any:
            return self._read(value, use_causal_mask, changes)[0]

        facts = {"is_causal": use_causal_mask, "is_softmax": False}
        record_attention(self, attend, heads["value"], mask, query_mask=inputs.query_mask, **facts)
        context = masks.masked_queries(attend(heads["value"]), inputs.query_mask)
        return self._project_back(self._normalized(context, heads), training)

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        shape = (batch_size, self.num_heads, self.key_dim, self.value_dim)
        return ops.zeros(shape, computing_dtype(self.compute_dtype))

    def attend_prompt(self, query, cache, real):
        heads = self._project_prompt(query, real)
        mask = ops.expand_dims(ops.cast(real, "bool"), 1)
        context, state = self._read(heads["value"], True, self._changes(heads, query, mask))
        return self._project_back(self._normalized(context, heads)), state

    def attend_step(self, query, cache, index, ancestor_mask=None):
        heads = self._project_hypotheses(query)
        rows = ops.reshape(query, (-1, 1, query.shape[2]))
        context, cache = self._step(heads["value"], cache, self._changes(heads, rows, None))
        return self._project_back_hypotheses(
            self._normalized(context, heads), query.shape[1]
        ), cache

    def _normalized(self, context, heads):
        """Contexts (batch, heads, length, value_dim) as they go into the output projection."""
        # Keras' `mean` is one in float32 on JAX.
        squares = ops.sum(ops.square(context), axis=-1, keepdims=True) / self.value_dim
        context = (
            context * ops.rsqrt(squares + self.epsilon) * ops.cast(self.norm_scale, context.dtype)
        )
        context = ops.cast(context, self.compute_dtype)
        return context * ops.silu(heads["gate"]) if self.use_gate else context


def of_positions(x: Tensor, mask: Tensor) -> Any:
    """Numbers (batch, heads, length, width) of positions, 0 where a mask hides them."""
    return x if mask is None else ops.where(ops.expand_dims(mask, -1), x, ops.zeros((), x.dtype))


def in_reverse(tensors: dict) -> dict:
    """Tensors (batch, heads, length, …) from the last position to the first."""
    return {name: ops.flip(tensor, axis=2) for name, tensor in tensors.items()}
