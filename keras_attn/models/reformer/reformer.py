"""The Reformer: a language model for long texts, by hashing and reversible blocks."""

import keras

from keras_attn.layers.attention.lsh_attention import LSHAttention
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.blocks.reversible_block import ReversibleBlock
from keras_attn.layers.blocks.reversible_stack import ReversibleStack
from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.models.decoding.reversible_token_stack import ReversibleTokenStack
from keras_attn.models.transformer.sizes import TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class Reformer(LanguageModel):
    """A decoder-only model of LSH attention in reversible blocks, over token ids.

    A position attends to those before it that hash to the same bucket, in time linear in the length
    but for sorting; training keeps nothing of the blocks but their output, so that its memory does
    not grow with their number. Both streams begin as the embedding, and their mean is what the
    output projection gets, tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        vocabulary_size: Number of tokens.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        num_buckets: Number of buckets, even; in the paper twice the length by `chunk_length`.
        num_hashes: Number of rounds of hashing.
        chunk_length: Number of positions in a chunk.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training of the embeddings and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, beginning with the start id.

    Returns:
        Logits of the next token at each position, (batch, length, vocabulary).

    Raises:
        UserError: A size is not positive, `num_heads` does not divide `hidden_dim`, or
            `num_buckets` is odd.

    Reference:
        Kitaev et al., 2020, https://arxiv.org/abs/2001.04451.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 6,
        hidden_dim: int = 512,
        num_heads: int = 8,
        intermediate_dim: int = 2048,
        num_buckets: int = 64,
        num_hashes: int = 4,
        chunk_length: int = 64,
        activation: str = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        learned_positions: int | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        sizes = TransformerSizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=None,
            value_dim=None,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=True,
            learned_positions=learned_positions,
            absolute_positions=True,
            rotary_positions=False,
            recompute=False,
            dtype=dtype,
        )

        # === Layers ===
        attention = LSHAttention(
            num_heads,
            hidden_dim // num_heads,
            num_buckets,
            num_hashes,
            chunk_length,
            dropout=attention_dropout,
        )
        blocks = [
            ReversibleBlock(
                attention,
                FeedForward(intermediate_dim, activation, dropout=activation_dropout),
                dropout,
                name=f"block_{i}",
                dtype=sizes.dtype,
            )
            for i in range(num_layers)
        ]
        stack = ReversibleTokenStack(
            ReversibleStack(blocks, name="blocks", dtype=sizes.dtype),
            embedding=sizes.embedding(vocabulary_size, "embedding"),
            positions=sizes.positions("positions"),
            dropout=sizes.dropout("dropout"),
            norm=sizes.last_norm("norm"),
        )
        super().__init__(stack, max_length=learned_positions, name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.blocks = blocks
        self._embedded = None  # of two streams
        shared = (
            "num_layers",
            "hidden_dim",
            "num_heads",
            "intermediate_dim",
            "activation",
            "dropout",
            "attention_dropout",
            "activation_dropout",
            "learned_positions",
        )
        self._keep_arguments(
            sizes.dtype,
            vocabulary_size=vocabulary_size,
            num_buckets=num_buckets,
            num_hashes=num_hashes,
            chunk_length=chunk_length,
            **{argument: sizes.config[argument] for argument in shared},
        )
