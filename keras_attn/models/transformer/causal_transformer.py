"""The decoder-only Transformer: a language model."""

import keras

from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import TransformerParts, TransformerSizes, greatest_length


@keras.saving.register_keras_serializable(package="keras_attn")
class CausalTransformer(LanguageModel):
    """A stack of decoder blocks without a source: every position sees those before it.

    The output projection is tied with the embedding. Token 0 is padding, at the end of a row.

    Args:
        vocabulary_size: Number of tokens.
        self_attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `TransformerSizes`, and further arguments of `LanguageModel`.

    Raises:
        UserError: A size is not positive, there are learned positions but none are
            added, `num_heads` does not divide `hidden_dim`, or the attention cannot be causal.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = CausalTransformer(11, **sizes)
        >>> model({"token_ids": ids}).shape
        (2, 4, 11)

    References:
        Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, section 3.1 (the blocks).
        Liu et al., 2018, https://arxiv.org/abs/1801.10198, section 4.2.3 (decoder-only).
    """

    sizes = TransformerSizes

    def __init__(
        self, vocabulary_size: int, *, self_attention: keras.layers.Layer | None = None, **kwargs
    ):
        sizes, dtype, kwargs = read_options(TransformerSizes, kwargs)
        parts = TransformerParts(sizes, dtype)
        stack = TokenStack(
            parts.embedding(vocabulary_size),
            parts.positions(),
            parts.dropout(),
            parts.decoder_blocks(self_attention),
            parts.last_norm(),
        )
        super().__init__(
            stack, max_length=greatest_length(sizes.learned_positions, self_attention), **kwargs
        )
