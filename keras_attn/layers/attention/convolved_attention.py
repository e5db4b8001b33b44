"""Attention behind a short convolution along the positions."""

from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.attention_layer import AttentionLayer, DecodingSteps
from keras_attn.layers.attention.capture import noted
from keras_attn.layers.attention.compatibility import (
    build_attention,
    require_self_attention,
    require_steps,
)
from keras_attn.layers.hidden_positions import as_float, of_known_features, without_hidden
from keras_attn.layers.layer_configs import copy_layer
from keras_attn.ops.decoding.cache import ConvolvedState
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor
from keras_attn.validation import is_integer, require


@keras.saving.register_keras_serializable(package="keras_attn")
class ConvolvedAttention(DecodingSteps, AttentionLayer):
    """Self-attention to inputs that a short depthwise convolution has mixed with their neighbors.

    Each feature is a weighted sum over `kernel_size` positions, the own one and those before it
    with `use_causal_mask`, and otherwise as many on both sides; those that masks hide count as
    zeros. A mechanism that sees no difference between neighbors, as linear attention, the
    delta rule and others with a state of constant size, so learns to store a value under the key
    before it. Decoding needs the last `kernel_size - 1` inputs beside the cache of the mechanism.

    Args:
        attention: Attention within one sequence, to build the attention from.
        kernel_size: Number of positions that are summed, 2 or more.
        kernel_initializer: Initializer of the weights (kernel_size, features) of the sums.
        kernel_regularizer: Their regularizer.
        kernel_constraint: Their constraint.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, 1, 1, length), `True` where all
            queries may attend to a key.

    Raises:
        UserError: `attention` is no attention layer, `kernel_size` is below 2, lengths differ, or
            an `attention_mask` differs between queries or heads.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> attention = ConvolvedAttention(LinearAttention(2, 4), kernel_size=4)
        >>> attention(x, x, use_causal_mask=True).shape
        (2, 5, 8)

    References:
        So et al., 2021, https://arxiv.org/abs/2109.08668, section 3 (a convolution of each head).
        Arora et al., 2023, https://arxiv.org/abs/2312.04927, section 4 (what it does for recall).
    """

    can_cross = False

    def __init__(
        self,
        attention: keras.layers.Layer,
        kernel_size: int = 4,
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        kernel_constraint: Any = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_self_attention("attention", attention)
        require(
            is_integer(kernel_size) and kernel_size >= 2,
            "`kernel_size` (the option `short_convolution`) must be 2 or more.",
            kernel_size=kernel_size,
        )
        self.attention = copy_layer(attention, "attention", dtype=self.dtype_policy)
        self.kernel_size = kernel_size
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)

    @property
    def can_be_causal(self) -> bool:
        """Whether the mechanism takes `use_causal_mask`."""
        return getattr(self.attention, "can_be_causal", True)

    def build(self, query_shape, value_shape=None, key_shape=None):
        self._require_shapes(query=query_shape, value=value_shape, key=key_shape)
        self.features = query_shape[-1]
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.kernel_size, self.features),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: self.features})
        build_attention(self.attention, query_shape)

    def _require_inputs(self, inputs):
        inputs.require_fitting(getattr(self.attention, "num_heads", 1), same_length=True)
        shape = () if inputs.attention_mask is None else tuple(inputs.attention_mask.shape)
        require(
            not shape or shape[-2] in (1, None),
            "Behind a short convolution an `attention_mask` cannot differ between queries: it must "
            "be (1, length), (batch, 1, length) or (batch, 1, 1, length).",
            shape=shape,
        )

    def _scores_shape(self, query_shape, value_shape):
        return self.attention._scores_shape(query_shape, value_shape)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        real, given = inputs.mask_of_positions(), inputs.visible(self.compute_dtype)
        convolved = {id(None): None}
        for x in given:
            if id(x) not in convolved:
                convolved[id(x)] = self._convolved(x, real, use_causal_mask)
        if real is not None:
            real = ops.broadcast_to(real, ops.shape(inputs.value)[:2])
        options = {"training": training, "use_causal_mask": use_causal_mask}
        if return_attention_scores:
            options["return_attention_scores"] = True
        with noted(layer=self):
            return self.attention(
                *(convolved[id(x)] for x in given),
                query_mask=inputs.query_mask,
                value_mask=real,
                **options,
            )

    def initial_cache(self, batch_size, max_length: int | None = None, beams: int = 1):
        require_steps("attention", self.attention, "initial_cache", "attend_step")
        recent = ops.zeros((batch_size, self.kernel_size - 1, self.features), self.compute_dtype)
        return ConvolvedState(recent, self.attention.initial_cache(batch_size, max_length, beams))

    def attend_prompt(self, query, cache, real):
        require_steps("attention", self.attention, "attend_prompt")
        query = without_hidden(self._ready(query), real)
        output, inner = self.attention.attend_prompt(
            self._convolved(query, None, True), cache.cache, real
        )
        before = self.kernel_size - 1
        count = ops.sum(ops.cast(real, "int32"), axis=1)
        last = ops.expand_dims(count, 1) + ops.arange(before, dtype="int32")  # of those padded
        padded = ops.pad(query, ((0, 0), (before, 0), (0, 0)))
        recent = ops.take_along_axis(padded, ops.expand_dims(last, -1), axis=1)
        return output, ConvolvedState(recent, inner)

    def attend_step(self, query, cache, index, ancestor_mask=None):
        sources, beams = ops.shape(query)[:2]
        rows = ops.reshape(self._ready(query), (-1, 1, self.features))
        window = ops.concatenate([cache.recent, rows], axis=1)  # (rows, kernel_size, features)
        mixed = ops.sum(window * ops.cast(self.kernel, self.compute_dtype), axis=1)
        mixed = ops.reshape(mixed, (sources, beams, self.features))
        output, inner = self.attention.attend_step(mixed, cache.cache, index, ancestor_mask)
        return output, ConvolvedState(window[:, 1:], inner)

    def _ready(self, x: Tensor) -> Any:
        x = of_known_features(as_float(x, self.compute_dtype), self.features)
        return ops.cast(x, self.compute_dtype)

    def _convolved(self, x: Tensor, real: Tensor, is_causal: bool) -> Any:
        """Sums over positions and their neighbors, in order; hidden ones count for themselves."""
        x, kernel = self._ready(x), ops.cast(self.kernel, self.compute_dtype)
        after = 0 if is_causal else (self.kernel_size - 1) // 2
        before = self.kernel_size - 1 - after
        shown = without_hidden(x, real)
        padded = ops.pad(shown, ((0, 0), (before, after), (0, 0)))
        length = ops.shape(x)[1]
        found = sum(part(padded, 1, i, length) * kernel[i] for i in range(self.kernel_size))
        return found if real is None else found + (x - shown) * kernel[before]

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        return self.attention.compute_output_shape(query_shape)
