"""Marian's Transformer, whose sides may differ, with a bias for every token."""

import dataclasses
from typing import ClassVar

import keras

from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.blocks.decoder_block import TransformerDecoderBlock
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import BiasedTokenEmbedding, TokenEmbedding
from keras_attn.layers.positions.sinusoidal import SinusoidalPositionEncoding
from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.encoder_decoder import token_embeddings
from keras_attn.models.decoding.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import StackSizes, greatest_length
from keras_attn.validation import require, require_rate

_EPSILON = 1e-5


@dataclasses.dataclass(frozen=True, kw_only=True)
class MarianSizes(StackSizes):
    """`StackSizes` with the defaults of Marian."""

    activation: str = "silu"
    positional: ClassVar[tuple[str, ...]] = ()


@keras.saving.register_keras_serializable(package="keras_attn")
class Marian(StackedSeq2Seq):
    """The Transformer of the Marian toolkit, over token ids with 0 as padding.

    Post-norm blocks as in the paper's Transformer. Positions are sinusoids, the sines in the first
    half of a vector and the cosines in the second; logits have a bias for each token. Encoder and
    decoder may have sizes of their own. Padding is never predicted.

    Args:
        vocabulary_size: Number of source tokens, padding among them.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        decoder_layers: Number of decoder blocks; `num_layers` by default.
        decoder_heads: Number of the decoder's; `num_heads` by default.
        decoder_intermediate_dim: Size inside the decoder's; `intermediate_dim` by default.
        scale_embedding: Whether looked-up vectors are multiplied by the square root of
            `hidden_dim`.
        tie_output: Whether the target embedding is the output projection too.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        activation_dropout: Fraction of the activations inside the feed-forward networks to drop
            in training.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        encoder_attention: Template of the encoder's attention, multi-head by default.
        self_attention: Template of the decoder's self-attention, multi-head by default.
        cross_attention: Template of the attention to the source, multi-head by default.
        **kwargs: Fields of `MarianSizes`, and further arguments of `StackedSeq2Seq`.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or a number of heads does not
            divide `hidden_dim`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = Marian(11, **sizes)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    Reference:
        Junczys-Dowmunt et al., 2018, https://arxiv.org/abs/1804.00344.
    """

    sizes = MarianSizes

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        *,
        decoder_layers: int | None = None,
        decoder_heads: int | None = None,
        decoder_intermediate_dim: int | None = None,
        scale_embedding: bool = True,
        tie_output: bool = True,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        recompute: bool = False,
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_rate(attention_dropout=attention_dropout, activation_dropout=activation_dropout)
        sizes, dtype, kwargs = read_options(MarianSizes, kwargs)

        def attention(num_heads: int) -> MultiHeadAttention:
            require(
                sizes.hidden_dim % num_heads == 0,
                "The number of heads must divide `hidden_dim`.",
                num_heads=num_heads,
                hidden_dim=sizes.hidden_dim,
            )
            return MultiHeadAttention(
                num_heads, sizes.hidden_dim // num_heads, dropout=attention_dropout
            )

        def parts(intermediate_dim: int) -> dict:
            return {
                "feed_forward": FeedForward(
                    intermediate_dim, sizes.activation, dropout=activation_dropout
                ),
                "dropout": sizes.dropout,
                "epsilon": _EPSILON,
                "recompute": recompute,
                "dtype": dtype,
            }

        def stack(side: str, embedding: TokenEmbedding, blocks: list, **more) -> TokenStack:
            return TokenStack(
                embedding,
                SinusoidalPositionEncoding(
                    interleaved=False, name=f"{side}_positions", dtype=dtype
                ),
                Dropout(sizes.dropout, name=f"{side}_dropout", dtype=dtype),
                blocks,
                None,
                **more,
            )

        # === Layers ===
        embeddings = {"scale": scale_embedding, "predict_zero": False, "dtype": dtype}
        source, target = token_embeddings(
            vocabulary_size,
            target_vocabulary_size,
            sizes.hidden_dim,
            output_bias=tie_output,
            **embeddings,
        )
        output = None
        if not tie_output:
            output = BiasedTokenEmbedding(
                target.vocabulary_size, sizes.hidden_dim, name="output", **embeddings
            )
        encoder_blocks = [
            TransformerEncoderBlock(
                encoder_attention or attention(sizes.num_heads),
                name=f"encoder_{i}",
                **parts(sizes.intermediate_dim),
            )
            for i in range(sizes.num_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                self_attention or attention(decoder_heads or sizes.num_heads),
                cross_attention=cross_attention or attention(decoder_heads or sizes.num_heads),
                name=f"decoder_{i}",
                **parts(decoder_intermediate_dim or sizes.intermediate_dim),
            )
            for i in range(decoder_layers or sizes.num_layers)
        ]
        super().__init__(
            stack("source", source, encoder_blocks),
            stack("target", target, decoder_blocks, output=output),
            max_length=greatest_length(encoder_attention, self_attention),
            **kwargs,
        )
