"""T5: an encoder-decoder Transformer that sees distances by biases of its attention."""

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.relative_position_bias import RelativePositionBias
from keras_attn.layers.rms_normalization import RMSNormalization
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.models.encoder_decoder import token_embeddings
from keras_attn.models.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.token_stack import TokenStack
from keras_attn.validation import require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class T5(StackedSeq2Seq):
    """The encoder-decoder of Raffel et al., 2020, over token ids with 0 as padding.

    Pre-norm blocks with root mean square norms and no biases. Self-attention sees distances by a
    learned bias, one table for all blocks of a stack; nothing else tells positions, so that
    sequences may have any length. Padding is never predicted.

    Args:
        vocabulary_size: Number of source tokens, padding among them.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        num_layers: Number of encoder blocks.
        decoder_layers: Number of decoder blocks; `num_layers` by default.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        key_dim: Size of each head, whatever `hidden_dim` is.
        intermediate_dim: Size inside the feed-forward networks.
        activation: Activation in the feed-forward networks: "relu" as in the paper, "gelu_tanh" in
            version 1.1.
        gated: Whether a linear projection multiplies the activation, as in version 1.1.
        tie_output: Whether the target embedding is the output projection too; not in version 1.1.
        num_buckets: Number of distances, or ranges of them, with a bias each.
        max_distance: From where on all distances are one.
        dropout: Share dropped in training wherever the model drops: of the embeddings, of each
            part's output, inside of the feed-forward networks, of the attention probabilities and
            of what comes out of a stack.
        epsilon: Added to the mean square in the normalisations.
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
        UserError: A size is not positive, a rate outside [0, 1), or the buckets do not fit
            `max_distance`.

    References:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 2.1.
        Shazeer, 2020, https://arxiv.org/abs/2002.05202 (version 1.1).
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
        key_dim: int = 64,
        intermediate_dim: int = 2048,
        activation: str = "relu",
        gated: bool = False,
        tie_output: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
        dropout: float = 0.1,
        epsilon: float = 1e-6,
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
        policy = {"dtype": keras.dtype_policies.get(dtype)}

        # === Layers ===
        # A variance of one over the number of inputs. The paper's queries start smaller by the
        # square root of the heads' size, by which its scores are not divided.
        initializer = keras.initializers.VarianceScaling(1.0, "fan_in", "untruncated_normal")
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size,
            target_vocabulary_size,
            hidden_dim,
            predict_zero=False,
            **policy,
        )
        output = None
        if not tie_output:
            size = target_vocabulary_size or vocabulary_size
            output = TokenEmbedding(size, hidden_dim, predict_zero=False, name="output", **policy)

        def attention(bidirectional: bool | None) -> MultiHeadAttention:
            bias = None
            if bidirectional is not None:
                sizes = (num_heads, num_buckets, max_distance, bidirectional)
                bias = RelativePositionBias(*sizes, embeddings_initializer=initializer)
            return MultiHeadAttention(
                num_heads,
                key_dim,
                dropout=dropout,
                use_bias=False,
                kernel_initializer=initializer,
                relative_positions=bias,
            )

        parts = {
            "feed_forward": FeedForward(
                intermediate_dim,
                activation,
                gated=gated,
                dropout=dropout,
                use_bias=False,
                kernel_initializer=initializer,
            ),
            "dropout": dropout,
            "norm_first": True,
            "norm": RMSNormalization(epsilon=epsilon),
            "recompute": recompute,
            **policy,
        }
        encoder_blocks = [
            TransformerEncoderBlock(
                encoder_attention or attention(bidirectional=True), name=f"encoder_{i}", **parts
            )
            for i in range(num_layers)
        ]
        decoder_blocks = [
            TransformerDecoderBlock(
                self_attention or attention(bidirectional=False),
                cross_attention=cross_attention or attention(bidirectional=None),
                name=f"decoder_{i}",
                **parts,
            )
            for i in range(decoder_layers or num_layers)
        ]
        _share_bias([block.attention for block in encoder_blocks])
        _share_bias([block.self_attention for block in decoder_blocks])

        def stack(side: str, embedding: TokenEmbedding, blocks: list, name: str, **more):
            return TokenStack(
                embedding,
                None,
                Dropout(dropout, name=f"{side}_dropout", **policy),
                blocks,
                RMSNormalization(epsilon=epsilon, name=f"{name}_norm", **policy),
                Dropout(dropout, name=f"{name}_dropout", **policy),
                **more,
            )

        limits = [
            getattr(layer, "max_length", None) for layer in (encoder_attention, self_attention)
        ]
        super().__init__(
            stack("source", source_embedding, encoder_blocks, "encoder"),
            stack("target", target_embedding, decoder_blocks, "decoder", output=output),
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
            key_dim=key_dim,
            intermediate_dim=intermediate_dim,
            activation=serialize_activation(activation),
            gated=gated,
            tie_output=tie_output,
            num_buckets=num_buckets,
            max_distance=max_distance,
            dropout=dropout,
            epsilon=epsilon,
            recompute=recompute,
            encoder_attention=encoder_attention,
            self_attention=self_attention,
            cross_attention=cross_attention,
        )


def _share_bias(attentions: list) -> None:
    """Gives all attention layers the first one's relative positions, before any is built."""
    first, *others = attentions
    for attention in others:
        if getattr(attention, "relative_positions", None) is not None:
            attention.relative_positions = first.relative_positions
