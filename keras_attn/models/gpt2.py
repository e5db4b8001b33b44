"""GPT-2: a decoder-only Transformer with norms first and learned positions."""

import math

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.models.language_model import LanguageModel
from keras_attn.models.token_stack import TokenStack
from keras_attn.validation import require, require_positive, require_rate


@keras.saving.register_keras_serializable(package="keras_attn")
class Gpt2(LanguageModel):
    """The language model of Radford et al., 2019, over token ids with 0 as padding.

    Embedded tokens and positions are summed up, pre-norm blocks and a norm follow, and the output
    projection is tied with the embedding of tokens, which is not scaled. Padding, which the paper's
    vocabulary has not, is never predicted.

    Args:
        vocabulary_size: Number of tokens, padding among them.
        num_layers: Number of blocks.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks; `4 * hidden_dim` by default.
        max_length: Number of positions with a learned vector each.
        activation: Activation in the feed-forward networks; "gelu_tanh" is that of the paper.
        dropout: Share dropped in training of the embeddings and of each part's output.
        attention_dropout: Share of the attention probabilities dropped in training.
        epsilon: Added to the variance in the normalisations.
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
        UserError: A size is not positive, a rate outside [0, 1), `num_heads` does not divide
            `hidden_dim`, or the attention cannot be causal.

    Reference:
        Radford et al., 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """

    layer_arguments = ("self_attention",)

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        hidden_dim: int = 768,
        num_heads: int = 12,
        intermediate_dim: int | None = None,
        max_length: int = 1024,
        activation: str = "gelu_tanh",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-5,
        recompute: bool = False,
        self_attention: keras.layers.Layer | None = None,
        dtype=None,
        name: str | None = None,
        trainable: bool = True,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
        require_rate(dropout=dropout, attention_dropout=attention_dropout)
        require(
            hidden_dim % num_heads == 0,
            "`num_heads` must divide `hidden_dim`.",
            num_heads=num_heads,
            hidden_dim=hidden_dim,
        )
        dtype = keras.dtype_policies.get(dtype)

        # === Layers ===
        small = keras.initializers.RandomNormal(stddev=0.02)
        # Smaller where a part's output is added to what there was, twice a block.
        smaller = keras.initializers.RandomNormal(stddev=0.02 / math.sqrt(2 * num_layers))
        attention = self_attention or MultiHeadAttention(
            num_heads,
            hidden_dim // num_heads,
            dropout=attention_dropout,
            kernel_initializer=small,
            output_initializer=smaller,
        )
        feed_forward = FeedForward(
            intermediate_dim or 4 * hidden_dim,
            activation,
            kernel_initializer=small,
            output_initializer=smaller,
        )
        blocks = [
            TransformerDecoderBlock(
                attention,
                feed_forward,
                dropout=dropout,
                norm_first=True,
                epsilon=epsilon,
                recompute=recompute,
                dtype=dtype,
                name=f"block_{i}",
            )
            for i in range(num_layers)
        ]
        stack = TokenStack(
            TokenEmbedding(
                vocabulary_size,
                hidden_dim,
                scale=False,
                predict_zero=False,
                embeddings_initializer=small,
                dtype=dtype,
                name="embedding",
            ),
            LearnedPositionEmbedding(max_length, small, dtype=dtype, name="positions"),
            Dropout(dropout, dtype=dtype, name="dropout"),
            blocks,
            LayerNormalization(epsilon=epsilon, dtype=dtype, name="norm"),
        )
        longest = min(max_length, getattr(self_attention, "max_length", None) or max_length)
        super().__init__(stack, max_length=longest, name=name, trainable=trainable)

        # === Config ===
        self.hidden_dim = hidden_dim
        self._keep_arguments(
            dtype,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            max_length=max_length,
            activation=serialize_activation(activation),
            dropout=dropout,
            attention_dropout=attention_dropout,
            epsilon=epsilon,
            recompute=recompute,
            self_attention=self_attention,
        )
