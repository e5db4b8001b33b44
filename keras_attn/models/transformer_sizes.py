"""The sizes that Transformers have in common, and the layers of these sizes."""

from typing import Any

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.rotary_embedding import RotaryEmbedding
from keras_attn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.validation import require, require_positive, require_rate


class TransformerSizes:
    """Checks the sizes of a Transformer and makes its layers.

    Args:
        num_layers: Number of blocks in a stack.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        activation: Activation in the feed-forward networks.
        dropout: Share of the embeddings and of each part's output dropped in training.
        attention_dropout: Share of the attention probabilities dropped in training.
        activation_dropout: Share of the activations inside the feed-forward networks dropped in
            training.
        norm_first: Whether blocks are pre-norm, with a norm after the last one.
        learned_positions: Number of positions with a learned vector each, or `None` for sinusoids.
        absolute_positions: Whether embedded tokens get positions added.
        rotary_positions: Whether self-attention rotates its queries and keys by their positions.
        recompute: Whether the backward pass computes each block again.
        dtype: Dtype policy of all layers; Keras' global one by default.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), there are learned positions but
            none are added, or `num_heads` does not divide
            `hidden_dim`.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        hidden_dim: int,
        num_heads: int,
        intermediate_dim: int,
        key_dim: int | None,
        value_dim: int | None,
        activation: str,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        norm_first: bool,
        learned_positions: int | None,
        absolute_positions: bool,
        rotary_positions: bool,
        recompute: bool,
        dtype: Any,
    ):
        require_positive(num_layers=num_layers, hidden_dim=hidden_dim, num_heads=num_heads)
        require_rate(dropout=dropout)
        require_rate(attention_dropout=attention_dropout, activation_dropout=activation_dropout)
        require(
            hidden_dim % num_heads == 0 or (key_dim is not None and value_dim is not None),
            "`num_heads` must divide `hidden_dim`.",
            num_heads=num_heads,
            hidden_dim=hidden_dim,
        )
        require(
            absolute_positions or learned_positions is None,
            "`learned_positions` need `absolute_positions`.",
            learned_positions=learned_positions,
            absolute_positions=absolute_positions,
        )
        self.dtype = keras.dtype_policies.get(dtype)
        self.config = {
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "num_heads": num_heads,
            "intermediate_dim": intermediate_dim,
            "key_dim": key_dim,
            "value_dim": value_dim,
            "activation": serialize_activation(activation),
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "norm_first": norm_first,
            "learned_positions": learned_positions,
            "absolute_positions": absolute_positions,
            "rotary_positions": rotary_positions,
            "recompute": recompute,
        }
        """What goes into a model's configuration, besides the dtype policy."""
        self._num_layers = num_layers
        self._hidden_dim = hidden_dim
        self._attention = {
            "num_heads": num_heads,
            "key_dim": key_dim or hidden_dim // num_heads,
            "value_dim": value_dim or hidden_dim // num_heads,
            "dropout": attention_dropout,
        }
        self._dropout = dropout
        self._norm_first = norm_first
        self._learned_positions = learned_positions
        self._absolute_positions = absolute_positions
        self._rotary = RotaryEmbedding() if rotary_positions else None
        self._block = {
            "feed_forward": FeedForward(intermediate_dim, activation, dropout=activation_dropout),
            "dropout": dropout,
            "norm_first": norm_first,
            "recompute": recompute,
            "dtype": self.dtype,
        }

    def embedding(self, vocabulary_size: int, name: str) -> TokenEmbedding:
        """The embedding of tokens."""
        return TokenEmbedding(vocabulary_size, self._hidden_dim, dtype=self.dtype, name=name)

    def positions(self, name: str) -> keras.layers.Layer | None:
        """What adds positions to embedded tokens, or `None`."""
        if not self._absolute_positions:
            return None
        if self._learned_positions is None:
            return SinusoidalPositionEncoding(dtype=self.dtype, name=name)
        return LearnedPositionEmbedding(self._learned_positions, dtype=self.dtype, name=name)

    def dropout(self, name: str) -> Dropout:
        """The dropout of embedded tokens."""
        return Dropout(self._dropout, dtype=self.dtype, name=name)

    def encoder_blocks(self, attention: keras.layers.Layer | None, name: str) -> list:
        """Blocks of an encoder, `NAME_0` and so on; multi-head attention by default."""
        return [
            TransformerEncoderBlock(
                attention or self._self_attention(), name=f"{name}_{i}", **self._block
            )
            for i in range(self._num_layers)
        ]

    def decoder_blocks(
        self,
        self_attention: keras.layers.Layer | None,
        name: str,
        cross_attention: keras.layers.Layer | None = None,
        attends_to_source: bool = False,
    ) -> list:
        """Blocks of a decoder, `NAME_0` and so on; multi-head attention by default."""
        return [
            TransformerDecoderBlock(
                self_attention or self._self_attention(),
                cross_attention=(
                    cross_attention or MultiHeadAttention(**self._attention)
                    if attends_to_source
                    else None
                ),
                name=f"{name}_{i}",
                **self._block,
            )
            for i in range(self._num_layers)
        ]

    def last_norm(self, name: str) -> LayerNormalization | None:
        """The norm after the last block, where blocks are pre-norm."""
        if not self._norm_first:
            return None
        return LayerNormalization(epsilon=1e-6, dtype=self.dtype, name=name)

    def max_length(self, *attentions: keras.layers.Layer | None) -> int | None:
        """The greatest length that positions and attention layers allow, or `None`."""
        limits = [self._learned_positions]
        limits += [getattr(attention, "max_length", None) for attention in attentions]
        return min((limit for limit in limits if limit is not None), default=None)

    def _self_attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(**self._attention, relative_positions=self._rotary)
