"""Attention to neighbors, to the ends and to random blocks, as in "Big Bird"."""

import random
from functools import partial

import keras
import numpy as np
from keras import ops

from keras_attn.layers.attention.multi_head_base import BaseMultiHeadAttention
from keras_attn.ops.block_sparse_attention import block_sparse_attention
from keras_attn.validation import is_integer, require, require_positive


@keras.saving.register_keras_serializable(package="keras_attn")
class BigBirdAttention(BaseMultiHeadAttention):
    """Multi-head self-attention of blocks to their neighbors, both ends and some random blocks.

    A block attends to itself, to the blocks beside it, to the first and the last block, and to
    `num_random_blocks` others, which each head draws for itself; the first and the last block
    attend to everything (BigBird-ITC). Time and memory are linear in the length. What is random are
    weights that are not trained, so that a saved layer attends as before; padding does not move it,
    and the last block is the last one with anything real. The ends attend to everything: there is
    no causal form. Masks hide keys from all queries alike.

    Args:
        num_heads: Number of heads.
        key_dim: Size of each head's query and key.
        block_length: Length of a block.
        num_random_blocks: Number of random blocks.
        repeat_first: Whether the first block is attended to that many times more in place of random
            blocks. So the BigBird of the library transformers computes outside of training.
        full_length: Sequences of at most this many positions attend to everything, as short inputs
            do in that library.
        dropout: Fraction of the attention probabilities to drop in training, in [0, 1).
        seed: Seed of the random blocks and of the dropout, a whole number.
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
        UserError: A size is not positive, `dropout` is outside [0, 1), lengths differ, scores or a
            causal mask are asked for, or an `attention_mask` differs between queries.

    Examples:
        >>> x = np.ones((2, 5, 8), "float32")  # (batch, length, features)
        >>> BigBirdAttention(2, 4, block_length=2)(x, x).shape
        (2, 5, 8)

    Reference:
        Zaheer et al., 2020, https://arxiv.org/abs/2007.14062, section 2.
    """

    can_be_causal = False
    can_cross = False

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        block_length: int = 64,
        num_random_blocks: int = 3,
        repeat_first: bool = False,
        full_length: int = 0,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        require_positive(block_length=block_length)
        counts = {"num_random_blocks": num_random_blocks, "full_length": full_length}
        for name, count in counts.items():
            require(
                is_integer(count) and count >= 0,
                f"`{name}` must be an integer, 0 or more.",
                **{name: count},
            )
        self.block_length = block_length
        self.num_random_blocks = num_random_blocks
        self.repeat_first = repeat_first
        self.full_length = full_length
        self._set_dropout(dropout, seed)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.random_places = None
        if self.num_random_blocks and not self.repeat_first:
            rng = np.random.default_rng(random.randrange(2**31) if self.seed is None else self.seed)
            self.random_places = self.add_weight(
                name="random_places",
                shape=(2, self.num_heads, self.num_random_blocks),
                initializer=lambda shape, dtype: ops.cast(rng.random(shape), dtype),
                dtype="float32",  # in half precision many blocks would choose the same one
                trainable=False,
                autocast=False,
            )

    def _attend(self, inputs, return_attention_scores, training, use_causal_mask):
        self._refuse_causal(use_causal_mask, "The first and the last block attend to everything")
        heads = self._project(*inputs.visible(self.compute_dtype), training)
        mask = inputs.mask_of_keys()
        attend = partial(
            block_sparse_attention,
            heads["query"],
            heads["key"],
            block_length=self.block_length,
            random_places=self.random_places,
            key_mask=mask,
            first_repeated=self.num_random_blocks if self.repeat_first else 0,
            full_length=self.full_length,
        )
        options = (inputs.query_mask, training, self._dropping(training))
        return self._attend_by_keys(attend, heads["value"], mask, *options)
