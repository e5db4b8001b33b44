"""T5: an encoder-decoder Transformer that sees distances by biases of its attention."""

import dataclasses
from typing import ClassVar

import keras

from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.blocks.decoder_block import TransformerDecoderBlock
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.positions.distance_biases import RelativePositionBias
from keras_attn.layers.rms_normalization import RMSNormalization
from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.encoder_decoder import token_embeddings
from keras_attn.models.decoding.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import StackSizes, greatest_length, share_positions


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Sizes(StackSizes):
    """`StackSizes` with the defaults of T5."""

    positional: ClassVar[tuple[str, ...]] = ()

    def _needs_width_of_heads(self) -> bool:
        return False


@keras.saving.register_keras_serializable(package="keras_attn")
class T5(StackedSeq2Seq):
    """The encoder-decoder of Raffel et al., 2020, over token ids with 0 as padding.

    Pre-norm blocks with root mean square norms and no biases. Self-attention sees distances by a
    learned bias, one table for all blocks of a stack; nothing else encodes positions, so that
    sequences may have any length. Padding is never predicted.

    Args:
        vocabulary_size: Number of source tokens, padding among them.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        decoder_layers: Number of decoder blocks; `num_layers` by default.
        key_dim: Size of each head, whatever `hidden_dim` is.
        gated: Whether a linear projection multiplies the activation, as in version 1.1.
        tie_output: Whether the target embedding is the output projection too; not in version 1.1.
        num_buckets: Number of distances, or ranges of them, with a bias each.
        max_distance: From where on all distances are one.
        epsilon: Added to the mean square in the normalizations.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        encoder_attention: Template of the encoder's attention, multi-head by default.
        self_attention: Template of the decoder's self-attention, multi-head by default.
        cross_attention: Template of the attention to the source, multi-head by default.
        **kwargs: Fields of `T5Sizes`, and further arguments of `StackedSeq2Seq`.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or the buckets do not fit
            `max_distance`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = T5(11, **sizes)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    References:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 2.1.
        Shazeer, 2020, https://arxiv.org/abs/2002.05202 (version 1.1).
    """

    sizes = T5Sizes

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        *,
        decoder_layers: int | None = None,
        key_dim: int = 64,
        gated: bool = False,
        tie_output: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
        epsilon: float = 1e-6,
        recompute: bool = False,
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        sizes, dtype, kwargs = read_options(T5Sizes, kwargs)

        # === Layers ===
        # A variance of one over the number of inputs. The paper's queries start smaller by the
        # square root of the heads' size, by which its scores are not divided.
        initializer = keras.initializers.VarianceScaling(1.0, "fan_in", "untruncated_normal")
        embeddings = {"predict_zero": False, "dtype": dtype}
        source, target = token_embeddings(
            vocabulary_size, target_vocabulary_size, sizes.hidden_dim, **embeddings
        )
        output = None
        if not tie_output:
            output = TokenEmbedding(
                target.vocabulary_size, sizes.hidden_dim, name="output", **embeddings
            )

        def attention(bidirectional: bool | None) -> MultiHeadAttention:
            bias = None
            if bidirectional is not None:
                bias = RelativePositionBias(
                    sizes.num_heads,
                    num_buckets,
                    max_distance,
                    bidirectional,
                    embeddings_initializer=initializer,
                )
            return MultiHeadAttention(
                sizes.num_heads,
                key_dim,
                dropout=sizes.dropout,
                use_bias=False,
                kernel_initializer=initializer,
                relative_positions=bias,
            )

        parts = {
            "feed_forward": FeedForward(
                sizes.intermediate_dim,
                sizes.activation,
                gated=gated,
                dropout=sizes.dropout,
                use_bias=False,
                kernel_initializer=initializer,
            ),
            "dropout": sizes.dropout,
            "norm_first": True,
            "norm": RMSNormalization(epsilon=epsilon),
            "recompute": recompute,
            "dtype": dtype,
        }
        encoder_blocks = [
            TransformerEncoderBlock(
                encoder_attention or attention(bidirectional=True), name=f"encoder_{i}", **parts
            )
            for i in range(sizes.num_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                self_attention or attention(bidirectional=False),
                cross_attention=cross_attention or attention(bidirectional=None),
                name=f"decoder_{i}",
                **parts,
            )
            for i in range(decoder_layers or sizes.num_layers)
        ]
        share_positions([block.attention for block in encoder_blocks])
        share_positions([block.self_attention for block in decoder_blocks])

        def stack(side: str, embedding: TokenEmbedding, blocks: list, name: str, **more):
            return TokenStack(
                embedding,
                None,
                Dropout(sizes.dropout, name=f"{side}_dropout", dtype=dtype),
                blocks,
                RMSNormalization(epsilon=epsilon, name=f"{name}_norm", dtype=dtype),
                Dropout(sizes.dropout, name=f"{name}_dropout", dtype=dtype),
                **more,
            )

        super().__init__(
            stack("source", source, encoder_blocks, "encoder"),
            stack("target", target, decoder_blocks, "decoder", output=output),
            max_length=greatest_length(encoder_attention, self_attention),
            **kwargs,
        )
