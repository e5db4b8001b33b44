"""The decoder-only Transformer: a language model."""

import keras

from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class CausalTransformer(LanguageModel):
    """A stack of decoder blocks without a source: every position sees those before it.

    The output projection is tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        vocabulary_size: Number of tokens.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training of the embeddings and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, instead of post-norm.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        absolute_positions: Whether positions are added to the embeddings at all; without them
            attention must see distances by itself.
        rotary_positions: Whether attention rotates its queries and keys by their positions as
            well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        self_attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`, beginning with the start id.

    Returns:
        Logits of the next token at each position, (batch, length, vocabulary).

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, `num_heads` does not divide `hidden_dim`, or the attention cannot be causal.

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1 (the blocks).
        Liu et al., 2018, https://arxiv.org/abs/1801.10198, section 4.2.3 (decoder-only).
    """

    layer_arguments = ("self_attention",)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 6,
        hidden_dim: int = 512,
        num_heads: int = 8,
        intermediate_dim: int = 2048,
        key_dim: int | None = None,
        value_dim: int | None = None,
        activation: str = "relu",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm_first: bool = False,
        learned_positions: int | None = None,
        absolute_positions: bool = True,
        rotary_positions: bool = False,
        recompute: bool = False,
        self_attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        sizes = TransformerSizes(
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            key_dim=key_dim,
            value_dim=value_dim,
            activation=activation,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            norm_first=norm_first,
            learned_positions=learned_positions,
            absolute_positions=absolute_positions,
            rotary_positions=rotary_positions,
            recompute=recompute,
            dtype=dtype,
        )

        # === Layers ===
        stack = TokenStack(
            sizes.embedding(vocabulary_size, "embedding"),
            sizes.positions("positions"),
            sizes.dropout("dropout"),
            sizes.decoder_blocks(self_attention, "block"),
            sizes.last_norm("norm"),
        )

        super().__init__(
            stack,
            max_length=sizes.max_length(self_attention),
            name=name,
            trainable=trainable,
        )

        # === Config ===
        self.hidden_dim = hidden_dim
        self._keep_arguments(
            sizes.dtype,
            vocabulary_size=vocabulary_size,
            self_attention=self_attention,
            **sizes.config,
        )
