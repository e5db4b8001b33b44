"""The encoder of the Transformer alone, for classification, tagging and embeddings."""

import keras

from keras_attn.models.backbone import Backbone
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerEncoder(Backbone):
    """A stack of encoder blocks over token ids, with 0 as padding.

    Every position attends to all that is no padding, before it and after it.

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
        norm_first: Pre-norm with a norm after the last block, instead of the paper's post-norm.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        absolute_positions: Whether positions are added to the embeddings at all; without them
            attention must see distances by itself.
        rotary_positions: Whether attention rotates its queries and keys by their positions as
            well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        attention: Attention layer to build that of every block from, multi-head by default.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"token_ids": int32 (batch, length)}`.

    Returns:
        Vectors (batch, length, hidden_dim), with Keras' mask of the padding.

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, or `num_heads` does not divide `hidden_dim`.

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1.
    """

    layer_arguments = ("attention",)

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
        attention: keras.layers.Layer | None = None,
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
            sizes.encoder_blocks(attention, "block"),
            sizes.last_norm("norm"),
        )

        # === Functional graph ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        super().__init__({"token_ids": token_ids}, stack(token_ids), name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.embedding = stack.embedding
        self.positions = stack.positions
        self.blocks = stack.blocks
        self.norm = stack.norm
        self._embedded = stack.embedded
        self.max_length = sizes.max_length(attention)
        self._keep_arguments(
            sizes.dtype, vocabulary_size=vocabulary_size, attention=attention, **sizes.config
        )
