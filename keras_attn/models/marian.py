"""Marian's Transformer, whose sides may differ, with a bias for every token."""

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.biased_token_embedding import BiasedTokenEmbedding
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.models.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.token_stack import TokenStack
from keras_attn.validation import require, require_positive, require_rate

_EPSILON = 1e-5


@keras.saving.register_keras_serializable(package="keras_attn")
class Marian(StackedSeq2Seq):
    """The Transformer of the Marian toolkit, over token ids with 0 as padding.

    Post-norm blocks as in the paper's Transformer. Positions are sinusoids, the sines in the first
    half of a vector and the cosines in the second; logits have a bias for each token. Encoder and
    decoder may have sizes of their own. Padding is never predicted.

    Args:
        vocabulary_size: Number of source tokens, padding among them.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        num_layers: Number of encoder blocks.
        decoder_layers: Number of decoder blocks; `num_layers` by default.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of the encoder's attention heads.
        decoder_heads: Number of the decoder's; `num_heads` by default.
        intermediate_dim: Size inside the encoder's feed-forward networks.
        decoder_intermediate_dim: Size inside the decoder's; `intermediate_dim` by default.
        activation: Activation in the feed-forward networks.
        scale_embedding: Whether looked-up vectors are multiplied by the square root of
            `hidden_dim`.
        tie_output: Whether the target embedding is the output projection too.
        dropout: Share of the embeddings and of each part's output dropped in training.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
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
        UserError: A size is not positive, a rate outside [0, 1), or a number of heads does not
            divide `hidden_dim`.

    Reference:
        Junczys-Dowmunt et al., 2018, https://arxiv.org/abs/1804.00344.
    """

    layer_arguments = ("encoder_attention", "self_attention", "cross_attention")

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        num_layers: int = 6,
        decoder_layers: int | None = None,
        hidden_dim: int = 512,
        num_heads: int = 8,
        decoder_heads: int | None = None,
        intermediate_dim: int = 2048,
        decoder_intermediate_dim: int | None = None,
        activation: str = "silu",
        scale_embedding: bool = True,
        tie_output: bool = True,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        recompute: bool = False,
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
        require_rate(dropout=dropout)
        require_rate(attention_dropout=attention_dropout, activation_dropout=activation_dropout)
        policy = {"dtype": keras.dtype_policies.get(dtype)}

        def embedding(kind: type[TokenEmbedding], size: int, name: str) -> TokenEmbedding:
            return kind(
                size, hidden_dim, scale=scale_embedding, predict_zero=False, name=name, **policy
            )

        def attention(num_heads: int) -> MultiHeadAttention:
            require(
                hidden_dim % num_heads == 0,
                "The number of heads must divide `hidden_dim`.",
                num_heads=num_heads,
                hidden_dim=hidden_dim,
            )
            return MultiHeadAttention(num_heads, hidden_dim // num_heads, dropout=attention_dropout)

        def parts(intermediate_dim: int) -> dict:
            return {
                "feed_forward": FeedForward(
                    intermediate_dim, activation, dropout=activation_dropout
                ),
                "dropout": dropout,
                "epsilon": _EPSILON,
                "recompute": recompute,
                **policy,
            }

        def stack(side: str, embedding: TokenEmbedding, blocks: list, **more) -> TokenStack:
            return TokenStack(
                embedding,
                SinusoidalPositionEncoding(interleaved=False, name=f"{side}_positions", **policy),
                Dropout(dropout, name=f"{side}_dropout", **policy),
                blocks,
                None,
                **more,
            )

        # === Layers ===
        kind = BiasedTokenEmbedding if tie_output else TokenEmbedding
        if target_vocabulary_size is None:
            source = target = embedding(kind, vocabulary_size, "source_embedding")
        else:
            source = embedding(TokenEmbedding, vocabulary_size, "source_embedding")
            target = embedding(kind, target_vocabulary_size, "target_embedding")
        output = None
        if not tie_output:
            size = target_vocabulary_size or vocabulary_size
            output = embedding(BiasedTokenEmbedding, size, "output")
        encoder_blocks = [
            TransformerEncoderBlock(
                encoder_attention or attention(num_heads),
                name=f"encoder_{i}",
                **parts(intermediate_dim),
            )
            for i in range(num_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                self_attention or attention(decoder_heads or num_heads),
                cross_attention=cross_attention or attention(decoder_heads or num_heads),
                name=f"decoder_{i}",
                **parts(decoder_intermediate_dim or intermediate_dim),
            )
            for i in range(decoder_layers or num_layers)
        ]
        limits = [
            getattr(layer, "max_length", None) for layer in (encoder_attention, self_attention)
        ]
        super().__init__(
            stack("source", source, encoder_blocks),
            stack("target", target, decoder_blocks, output=output),
            max_length=min((limit for limit in limits if limit is not None), default=None),
            name=name,
            trainable=trainable,
        )

        # === Config ===
        self.hidden_dim = hidden_dim
        self.output_embedding = output
        self._keep_arguments(
            policy["dtype"],
            vocabulary_size=vocabulary_size,
            target_vocabulary_size=target_vocabulary_size,
            num_layers=num_layers,
            decoder_layers=decoder_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            decoder_heads=decoder_heads,
            intermediate_dim=intermediate_dim,
            decoder_intermediate_dim=decoder_intermediate_dim,
            activation=serialize_activation(activation),
            scale_embedding=scale_embedding,
            tie_output=tie_output,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            recompute=recompute,
            encoder_attention=encoder_attention,
            self_attention=self_attention,
            cross_attention=cross_attention,
        )
