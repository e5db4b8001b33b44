"""Attention to blocks that a network sorts, as in "Sparse Sinkhorn Attention"."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.layers.dense import Dense
from keras_attn.layers.seeds import separate_initializer
from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.blockwise.blocks import Cut
from keras_attn.ops.joint_attention import blocks_of_mask
from keras_attn.ops.sinkhorn_attention import sinkhorn, sinkhorn_attention
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class SinkhornAttention(BaseMultiHeadAttention):
    """Multi-head self-attention to the own block and to a block that a network chooses.

    A network of two layers reads the mean of each block's inputs and gives, for each head, how well
    every block suits it. Normalized by rows and columns in turn this is nearly a permutation, by
    which keys and values of blocks are mixed. Each position attends to its own block and to the
    mixture in its place, in one softmax. The order of the blocks depends on all of them: there is
    no causal form. Blocks of padding are not sorted. Masks hide keys from all queries alike.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        block_length: Length of a block.
        max_length: Greatest length.
        iterations: Number of times that rows and columns are normalized.
        temperature: The smaller, the nearer to a permutation.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
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
        UserError: A size is not positive, the sequence is longer than `max_length`, `dropout` is
            outside [0, 1), lengths differ, scores or a causal mask are asked for, or an
            `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> SinkhornAttention(2, 4, block_length=2, max_length=8)(x, x).shape
        (2, 5, 8)

    Reference:
        Tay et al., 2020, https://arxiv.org/abs/2002.11296, section 3.
    """

    can_be_causal = False
    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        block_length: int,
        max_length: int,
        iterations: int = 5,
        temperature: float = 0.75,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(block_length=block_length, max_length=max_length, iterations=iterations)
        require(temperature > 0, "`temperature` must be positive.", temperature=temperature)
        self.block_length = block_length
        self.max_length = max_length
        self.iterations = iterations
        self.temperature = temperature
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        features = (key_shape or value_shape or query_shape)[-1]
        initializers = [separate_initializer(self.kernel_initializer, 5 + n) for n in range(2)]
        options = {"dtype": self.dtype_policy}
        self.sort_hidden = Dense(
            features,
            activation="relu",
            kernel_initializer=initializers[0],
            name="sort_hidden",
            **options,
        )
        self.sort_hidden.build((None, features))
        self.sort_output = Dense(
            self.num_heads * self._max_blocks,
            use_bias=False,  # which normalizing the columns would take out again
            kernel_initializer=initializers[1],
            name="sort_output",
            **options,
        )
        self.sort_output.build((None, features))

    @property
    def _max_blocks(self) -> int:
        return -(-self.max_length // self.block_length)

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        self._refuse_causal(use_causal_mask, "The order of blocks depends on all positions")
        query, value, key = inputs.visible(self.compute_dtype)
        length = query.shape[1]
        require(
            length is None or length <= self.max_length,
            "The sequence must not be longer than `max_length`.",
            length=length,
            max_length=self.max_length,
        )
        heads = self._project(query, value, key, training)
        mask = inputs.mask_of_keys()
        attend = partial(
            sinkhorn_attention,
            heads["query"],
            heads["key"],
            order=self._order(value if key is None else key, mask),
            block_length=self.block_length,
            key_mask=mask,
        )
        options = (inputs.query_mask, training, self._dropping(training))
        return self._attend_by_keys(attend, heads["value"], mask, *options)

    def _order(self, x: Tensor, mask: Tensor) -> Any:
        """Weights of blocks in each mixture, (batch, heads, blocks, blocks)."""
        cut = Cut.into(ops.shape(x)[1], self.block_length)
        real = ops.expand_dims(blocks_of_mask(cut, mask), -1)
        blocks = cut.blocks(ops.expand_dims(x, 1))  # (batch, 1, blocks, block_length, features)
        # Of several heads' masks a position counts for the network where any has it.
        counted = ops.cast(ops.any(real, axis=1, keepdims=True), blocks.dtype)
        sizes = ops.maximum(ops.sum(counted, axis=3), 1)
        means = (ops.sum(blocks * counted, axis=3) / sizes)[:, 0]  # (batch, blocks, features)
        logits = self.sort_output(self.sort_hidden(means))
        batch, count, _ = ops.shape(logits)
        logits = ops.reshape(logits, (batch, count, self.num_heads, self._max_blocks))
        logits = ops.transpose(part(logits, 3, 0, count), (0, 2, 1, 3))
        logits = ops.cast(logits, computing_dtype(self.compute_dtype)) / self.temperature
        return sinkhorn(logits, ops.any(real[..., 0], axis=-1), self.iterations)
