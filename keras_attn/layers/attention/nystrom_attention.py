"""Attention estimated from landmarks, as in "Nyströmformer"."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import dot_product_attention
from keras_attn.ops.nystrom_attention import nystrom_attention
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class NystromAttention(BaseMultiHeadAttention):
    """Multi-head self-attention whose softmax is estimated from landmarks.

    Landmarks are the means of queries and keys over segments; the matrix of all pairs is the
    product of three small ones, the middle one inverted in some iterations, so time and memory are
    linear in the length. A depthwise convolution of the values along the length is added where
    `convolution_width` is given. Landmarks hold all positions: there is no causal form. Padding is
    in no segment. Masks hide keys from all queries alike.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        num_landmarks: Number of segments; `None` computes the softmax of all pairs exactly, in
            quadratic time and memory.
        iterations: Number of steps towards the inverse.
        convolution_width: Odd number of positions that the convolution reads, one kernel for each
            head; none by default.
        dropout: Fraction to drop of the weights between queries and landmarks in training, in
            [0, 1).
        seed: Seed of the dropout, a whole number.
        **kwargs: Further arguments of `BaseMultiHeadAttention`.

    Call arguments:
        value: Tensor (batch, source, features), as long as the query.
        attention_mask: Boolean (batch, 1, length) or (batch, heads or 1, 1, length), `True` where
            all queries may attend to a key.
        return_attention_scores: Must be `False`.
        use_causal_mask: Must be `False`.

    Returns:
        The output (batch, length, features).

    Raises:
        UserError: A size is not positive, the convolution's width is even, `dropout` is outside
            [0, 1), lengths differ, scores or a causal mask are asked for, or an `attention_mask`
            differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> NystromAttention(2, 4, num_landmarks=3)(x, x).shape
        (2, 5, 8)

    Reference:
        Xiong et al., 2021, https://arxiv.org/abs/2102.03902, section 3.
    """

    can_be_causal = False
    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        num_landmarks: int | None,
        iterations: int = 6,
        convolution_width: int | None = None,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(iterations=iterations)
        if num_landmarks is not None:
            require_positive(num_landmarks=num_landmarks)
        if convolution_width is not None:
            require_positive(convolution_width=convolution_width)
            require(
                convolution_width % 2 == 1,
                "`convolution_width` must be odd.",
                convolution_width=convolution_width,
            )
        self.num_landmarks = num_landmarks
        self.iterations = iterations
        self.convolution_width = convolution_width
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.convolution = None
        if self.convolution_width is not None:
            self.convolution = self.add_weight(
                name="convolution",
                shape=(self.convolution_width, self.num_heads),
                initializer=separate_initializer(self.kernel_initializer, 5),
                regularizer=self.kernel_regularizer,
                constraint=self.kernel_constraint,
            )

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        self._refuse_causal(use_causal_mask, "Landmarks hold all positions")
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        mask = inputs.mask_of_keys()
        attend = partial(self._attend_landmarks, heads["query"], heads["key"], mask)
        options = (inputs.query_mask, training, self._dropping(training))
        # Estimated weights may be a little below 0.
        is_softmax = self.num_landmarks is None and self.convolution is None
        return self._attend_by_keys(attend, heads["value"], mask, *options, is_softmax=is_softmax)

    def _attend_landmarks(self, query, key, mask, value, **dropping) -> Any:
        if mask is not None:
            value = ops.where(ops.expand_dims(mask, -1), value, ops.zeros((), value.dtype))
        if self.num_landmarks is None:
            key_mask = None if mask is None else ops.expand_dims(mask, 2)
            context = dot_product_attention(query, key, value, mask=key_mask, **dropping)
        else:
            sizes = (self.num_landmarks, mask, self.iterations)
            context = nystrom_attention(query, key, value, *sizes, **dropping)
        return context if self.convolution is None else context + self._convolved(value)

    def _convolved(self, value: Tensor) -> Any:
        """Values (batch, heads, length, value_dim) convolved along the length."""
        kernel = ops.cast(self.convolution, value.dtype)[:, None, :, None]  # (width, 1, heads, 1)
        as_image = ops.transpose(value, (0, 2, 3, 1))  # (batch, length, value_dim, heads)
        convolved = ops.depthwise_conv(
            as_image, kernel, padding="same", data_format="channels_last"
        )
        return ops.transpose(convolved, (0, 3, 1, 2))
