"""GPT-2: a decoder-only Transformer with norms first and learned positions."""

import dataclasses
import math

import keras

from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.blocks.decoder_block import TransformerDecoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.models.configured_model import read_options
from keras_attn.models.decoding.language_model import LanguageModel
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.models.transformer.sizes import BertSizes, greatest_length
from keras_attn.validation import require_rate


@dataclasses.dataclass(frozen=True, kw_only=True)
class GPT2Sizes(BertSizes):
    """`StackSizes` with the defaults of GPT-2."""

    intermediate_dim: int | None = None
    activation: str = "gelu_tanh"


@keras.saving.register_keras_serializable(package="keras_attn")
class GPT2(LanguageModel):
    """The language model of Radford et al., 2019, over token ids with 0 as padding.

    Embedded tokens and positions are summed up, pre-norm blocks and a norm follow, and the output
    projection is tied with the embedding of tokens, which is not scaled. Padding, which the paper's
    vocabulary has not, is never predicted.

    Args:
        vocabulary_size: Number of tokens, padding among them.
        max_length: Number of positions with a learned vector each.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        epsilon: Added to the variance in the normalizations.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        self_attention: Attention layer to build that of every block from, multi-head by default.
        **kwargs: Fields of `GPT2Sizes`, and further arguments of `LanguageModel`.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), `num_heads` does not divide
            `hidden_dim`, or the attention cannot be causal.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> ids = np.array([[5, 7, 3, 9], [4, 6, 0, 0]])  # 0 is padding
        >>> model = GPT2(11, **sizes)
        >>> model({"token_ids": ids}).shape
        (2, 4, 11)

    Reference:
        Radford et al., 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """

    sizes = GPT2Sizes

    def __init__(
        self,
        vocabulary_size: int,
        *,
        max_length: int = 1024,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-5,
        recompute: bool = False,
        self_attention: keras.layers.Layer | None = None,
        **kwargs,
    ):
        require_rate(attention_dropout=attention_dropout)
        sizes, dtype, kwargs = read_options(GPT2Sizes, kwargs)

        # === Layers ===
        small = keras.initializers.RandomNormal(stddev=0.02)
        # Smaller where a part's output is added to what there was, twice a block.
        smaller = keras.initializers.RandomNormal(stddev=0.02 / math.sqrt(2 * sizes.num_layers))
        attention = self_attention or MultiHeadAttention(
            sizes.num_heads,
            sizes.head_dim,
            dropout=attention_dropout,
            kernel_initializer=small,
            output_initializer=smaller,
        )
        feed_forward = FeedForward(
            sizes.intermediate_dim or 4 * sizes.hidden_dim,
            sizes.activation,
            kernel_initializer=small,
            output_initializer=smaller,
        )
        blocks = [
            TransformerDecoderBlock(
                attention,
                feed_forward,
                dropout=sizes.dropout,
                norm_first=True,
                epsilon=epsilon,
                recompute=recompute,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(sizes.num_layers)
        ]
        stack = TokenStack(
            TokenEmbedding(
                vocabulary_size,
                sizes.hidden_dim,
                scale=False,
                predict_zero=False,
                embeddings_initializer=small,
                dtype=dtype,
                name="embedding",
            ),
            LearnedPositionEmbedding(max_length, small, dtype=dtype, name="positions"),
            Dropout(sizes.dropout, dtype=dtype, name="dropout"),
            blocks,
            LayerNormalization(epsilon=epsilon, dtype=dtype, name="norm"),
        )
        super().__init__(stack, max_length=greatest_length(max_length, self_attention), **kwargs)
