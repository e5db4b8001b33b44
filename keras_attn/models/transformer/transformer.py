"""The encoder-decoder Transformer of "Attention Is All You Need"."""

import keras

from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.encoder_decoder import token_embeddings
from keras_attn.models.decoding.stacked_seq2seq import StackedSeq2Seq
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes, greatest_length


@keras.saving.register_keras_serializable(package="keras_attn")
class Transformer(StackedSeq2Seq):
    """An encoder-decoder Transformer over token ids, with 0 as padding.

    The output projection is tied with the target embedding; without a target vocabulary of its
    own the target shares the source's embedding too, as in the paper.

    Args:
        vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, where they are not the source's.
        encoder_attention: Template of the encoder's attention, multi-head by default.
        self_attention: Template of the decoder's self-attention, multi-head by default.
        cross_attention: Template of the attention to the source, multi-head by default.
        **kwargs: Fields of `TransformerSizes`, and further arguments of `StackedSeq2Seq`.

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, or `num_heads` does not divide `hidden_dim`.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = Transformer(11, **sizes)
        >>> model({"source_ids": ids, "target_ids": ids[:, :3]}).shape
        (2, 3, 11)

    Reference:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762.
    """

    sizes = TransformerSizes

    def __init__(
        self,
        vocabulary_size: int,
        target_vocabulary_size: int | None = None,
        *,
        encoder_attention: keras.layers.Layer | None = None,
        self_attention: keras.layers.Layer | None = None,
        cross_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        sizes, dtype, kwargs = read_options(TransformerSizes, kwargs)
        parts = TransformerParts(sizes, dtype)
        source_embedding, target_embedding = token_embeddings(
            vocabulary_size, target_vocabulary_size, sizes.hidden_dim, dtype=dtype
        )
        # In this order: each dropout draws its seed when it is made.
        source_dropout, target_dropout = map(parts.dropout, ("source_dropout", "target_dropout"))
        encoder = TokenStack(
            source_embedding,
            parts.positions("source_positions"),
            source_dropout,
            parts.encoder_blocks(encoder_attention, "encoder"),
            parts.last_norm("encoder_norm"),
        )
        decoder = TokenStack(
            target_embedding,
            parts.positions("target_positions"),
            target_dropout,
            parts.decoder_blocks(
                self_attention, "decoder", cross_attention, attends_to_source=True
            ),
            parts.last_norm("decoder_norm"),
        )
        super().__init__(
            encoder,
            decoder,
            max_length=greatest_length(sizes.learned_positions, encoder_attention, self_attention),
            **kwargs,
        )
