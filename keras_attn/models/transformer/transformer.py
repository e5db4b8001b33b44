"""The encoder-decoder Transformer of "Attention Is All You Need"."""

import keras

from keras_attn.models.decoding.encoder_decoder import token_embeddings
from keras_attn.models.decoding.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerSizes


@keras.saving.register_keras_serializable(package="keras_attn")
class Transformer(StackedSeq2Seq):
    """An encoder-decoder Transformer over token ids, with 0 as padding.

    The output projection is tied with the target embedding; without a target vocabulary of its
    own the target shares the source's embedding too, as in the paper.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        num_layers: Number of encoder blocks, and of decoder blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share dropped in training where the paper drops: of the embeddings and of each
            part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Pre-norm with a norm after the last block, instead of the paper's post-norm.
        learned_positions: Number of positions with a learned vector each, on either side, instead
            of sinusoids.
        absolute_positions: Whether positions are added to the embeddings at all; without them
            attention must see distances by itself.
        rotary_positions: Whether self-attention rotates its queries and keys by their positions
            as well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        encoder_attention: Attention layer to build the encoder's from, multi-head by default.
        self_attention: Attention layer to build the decoder's self-attention from, likewise.
        cross_attention: Attention layer to build the attention to the source from, likewise.
        dtype: Dtype policy of all layers; Keras' global one by default.
        name: Name of the model.
        trainable: Whether its weights are to be trained.

    Call arguments:
        inputs: `{"source_ids": int32 (batch, source), "target_ids": int32 (batch, target)}`, the
            target beginning with the start id.

    Returns:
        Logits of the next target token at each position, (batch, target, target vocabulary).

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, or `num_heads` does not divide `hidden_dim`.

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762.
    """

    layer_arguments = ("encoder_attention", "self_attention", "cross_attention")

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
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
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
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
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size, target_vocabulary_size, hidden_dim, dtype=sizes.dtype
        )
        source_positions = sizes.positions("source_positions")
        target_positions = sizes.positions("target_positions")
        source_dropout = sizes.dropout("source_dropout")
        target_dropout = sizes.dropout("target_dropout")
        encoder = TokenStack(
            source_embedding,
            source_positions,
            source_dropout,
            sizes.encoder_blocks(encoder_attention, "encoder"),
            sizes.last_norm("encoder_norm"),
        )
        decoder = TokenStack(
            target_embedding,
            target_positions,
            target_dropout,
            sizes.decoder_blocks(
                self_attention, "decoder", cross_attention, attends_to_source=True
            ),
            sizes.last_norm("decoder_norm"),
        )

        limit = sizes.max_length(encoder_attention, self_attention)
        super().__init__(encoder, decoder, max_length=limit, name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self._keep_arguments(
            sizes.dtype,
            vocabulary_size=vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            encoder_attention=encoder_attention,
            self_attention=self_attention,
            cross_attention=cross_attention,
            **sizes.config,
        )
