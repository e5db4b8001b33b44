"""The Reformer: a language model for long texts, by hashing and reversible blocks."""

import dataclasses

import keras

from keras_attn.layers.attention.lsh_attention import LSHAttention
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.blocks.reversible_block import ReversibleBlock
from keras_attn.layers.blocks.reversible_stack import ReversibleStack
from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.models.decoding.reversible_token_stack import ReversibleTokenStack
from keras_attn.models.transformer.sizes import StackSizes, TransformerParts, TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class Reformer(LanguageModel):
    """A decoder-only model of LSH attention in reversible blocks, over token ids.

    A position attends to those before it that hash to the same bucket, in time linear in the length
    but for sorting; training keeps nothing of the blocks but their output, so that its memory does
    not grow with their number. Both streams begin as the embedding, and their mean is what the
    output projection gets, tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        vocabulary_size: Number of tokens.
        num_buckets: Number of buckets, even; in the paper twice the length by `chunk_length`.
        num_hashes: Number of rounds of hashing.
        chunk_length: Number of positions in a chunk.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        activation_dropout: Fraction of the activations inside the feed-forward networks to drop
            in training.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        **kwargs: Fields of `StackSizes`, and further arguments of `LanguageModel`.

    Raises:
        UserError: A size is not positive, `num_heads` does not divide `hidden_dim`, or
            `num_buckets` is odd.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = Reformer(11, **sizes, num_buckets=2, chunk_length=2)
        >>> model({"token_ids": ids}).shape
        (2, 4, 11)

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451.
    """

    sizes = StackSizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        num_buckets: int = 64,
        num_hashes: int = 4,
        chunk_length: int = 64,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        learned_positions: int | None = None,
        **kwargs,
    ):
        sizes, dtype, kwargs = read_options(StackSizes, kwargs)
        parts = TransformerParts(
            TransformerSizes(
                **dataclasses.asdict(sizes),
                attention_dropout=attention_dropout,
                activation_dropout=activation_dropout,
                learned_positions=learned_positions,
                norm_first=True,
            ),
            dtype,
        )
        attention = LSHAttention(
            sizes.num_heads,
            sizes.head_dim,
            num_buckets,
            num_hashes,
            chunk_length,
            dropout=attention_dropout,
        )
        blocks = [
            ReversibleBlock(
                attention,
                FeedForward(sizes.intermediate_dim, sizes.activation, dropout=activation_dropout),
                sizes.dropout,
                name=f"block_{i}",
                dtype=dtype,
            )
            for i in range(sizes.num_layers)
        ]
        stack = ReversibleTokenStack(
            ReversibleStack(blocks, name="blocks", dtype=dtype),
            embedding=parts.embedding(vocabulary_size),
            positions=parts.positions(),
            dropout=parts.dropout(),
            norm=parts.last_norm(),
        )
        super().__init__(stack, max_length=learned_positions, **kwargs)
        self.blocks = blocks
        self._embedded = None  # of two streams
