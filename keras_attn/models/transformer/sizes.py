"""The sizes that Transformers have in common, and the layers of these sizes."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import keras

from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.blocks.decoder_block import TransformerDecoderBlock
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.layer_normalization import LayerNormalization
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.layers.positions.rotary import RotaryEmbedding
from keras_attn.layers.positions.sinusoidal import SinusoidalPositionEncoding
from keras_attn.models.decoding.token_stack import TokenStack
from keras_attn.validation import require, require_positive, require_rate


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackSizes:
    """Sizes of a stack of Transformer blocks.

    Attributes:
        num_layers: Number of blocks, on either side of an encoder-decoder.
        hidden_dim: Size of the vectors between the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Size inside the feed-forward networks.
        activation: Activation in the feed-forward networks; Keras' "gelu" is the exact one.
        dropout: Fraction of the embeddings and of each part's output to drop in training.

    Raises:
        UserError: A size is not positive, a rate outside [0, 1), or `num_heads` does not divide
            `hidden_dim`.
    """

    num_layers: int = 6
    hidden_dim: int = 512
    num_heads: int = 8
    intermediate_dim: int = 2048
    activation: str = "relu"
    dropout: float = 0.1

    positional: ClassVar[tuple[str, ...]] = (
        "num_layers",
        "hidden_dim",
        "num_heads",
        "intermediate_dim",
    )
    """Fields that constructors take by their place too."""

    def __post_init__(self) -> None:
        names = ("num_layers", "hidden_dim", "num_heads")
        require_positive(**{name: getattr(self, name) for name in names})
        require_rate(dropout=self.dropout)
        require(
            self.hidden_dim % self.num_heads == 0 or not self._needs_width_of_heads(),
            "`num_heads` must divide `hidden_dim`.",
            num_heads=self.num_heads,
            hidden_dim=self.hidden_dim,
        )

    def _needs_width_of_heads(self) -> bool:
        return True

    @property
    def head_dim(self) -> int:
        """Size of a head where nothing else is said."""
        return self.hidden_dim // self.num_heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertSizes(StackSizes):
    """`StackSizes` with the defaults of BERT's base model."""

    num_layers: int = 12
    hidden_dim: int = 768
    num_heads: int = 12
    intermediate_dim: int = 3072
    activation: str = "gelu"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerSizes(StackSizes):
    """Sizes and choices of the Transformer families.

    Attributes:
        key_dim: Size of each head's query and key; `hidden_dim / num_heads` by default.
        value_dim: Size of each head's value; `hidden_dim / num_heads` by default.
        attention_dropout: Fraction of the attention probabilities to drop in training.
        activation_dropout: Fraction of the activations inside the feed-forward networks to drop in
            training.
        norm_first: Whether blocks are pre-norm, with a norm after the last one, instead of the
            paper's post-norm.
        learned_positions: Number of positions with a learned vector each, instead of sinusoids.
        absolute_positions: Whether positions are added to the embeddings; without them attention
            must see distances by itself.
        rotary_positions: Whether self-attention rotates its queries and keys by their positions
            as well (Su et al., 2021), so that it sees distances.
        recompute: Whether the backward pass computes each block again: less memory in training,
            for about a third more time.
        epsilon: Added to the variance in the normalizations.

    Raises:
        UserError: As for `StackSizes`, or there are learned positions but none are added.
    """

    key_dim: int | None = None
    value_dim: int | None = None
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    norm_first: bool = False
    learned_positions: int | None = None
    absolute_positions: bool = True
    rotary_positions: bool = False
    recompute: bool = False
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        require_rate(
            attention_dropout=self.attention_dropout, activation_dropout=self.activation_dropout
        )
        require(
            self.absolute_positions or not self.learned_positions,
            "`learned_positions` need `absolute_positions`.",
            learned_positions=self.learned_positions,
            absolute_positions=self.absolute_positions,
        )

    def _needs_width_of_heads(self) -> bool:
        return self.key_dim is None or self.value_dim is None


HEADS_AND_POSITIONS = (
    "key_dim",
    "value_dim",
    "learned_positions",
    "absolute_positions",
    "rotary_positions",
)
"""Fields of `TransformerSizes` that models with an attention of their own do not take."""


class TransformerParts:
    """Makes the layers of a Transformer.

    Args:
        sizes: Their sizes.
        dtype: Dtype policy of all layers.
    """

    def __init__(self, sizes: TransformerSizes, dtype: keras.DTypePolicy):
        self._sizes, self._dtype = sizes, dtype
        self._attention = {
            "num_heads": sizes.num_heads,
            "key_dim": sizes.key_dim or sizes.head_dim,
            "value_dim": sizes.value_dim or sizes.head_dim,
            "dropout": sizes.attention_dropout,
        }
        self._block = {
            "feed_forward": FeedForward(
                sizes.intermediate_dim, sizes.activation, dropout=sizes.activation_dropout
            ),
            "dropout": sizes.dropout,
            "norm_first": sizes.norm_first,
            "epsilon": sizes.epsilon,
            "recompute": sizes.recompute,
            "dtype": dtype,
        }

    def embedding(self, vocabulary_size: int, name: str = "embedding") -> TokenEmbedding:
        """The embedding of tokens."""
        return TokenEmbedding(vocabulary_size, self._sizes.hidden_dim, dtype=self._dtype, name=name)

    def positions(self, name: str = "positions") -> keras.layers.Layer | None:
        """What adds positions to embedded tokens, or `None`."""
        learned = self._sizes.learned_positions
        if not self._sizes.absolute_positions:
            return None
        if learned is None:
            return SinusoidalPositionEncoding(dtype=self._dtype, name=name)
        return LearnedPositionEmbedding(learned, dtype=self._dtype, name=name)

    def dropout(self, name: str = "dropout") -> Dropout:
        """The dropout of embedded tokens."""
        return Dropout(self._sizes.dropout, dtype=self._dtype, name=name)

    def encoder_blocks(self, attention: keras.layers.Layer | None, name: str = "block") -> list:
        """Blocks of an encoder, `NAME_0` and so on; multi-head attention by default."""
        return [
            TransformerEncoderBlock(
                attention or self._self_attention(), name=f"{name}_{i}", **self._block
            )
            for i in range(self._sizes.num_layers)
        ]

    def decoder_blocks(
        self,
        self_attention: keras.layers.Layer | None,
        name: str = "block",
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
            for i in range(self._sizes.num_layers)
        ]

    def encoder(
        self,
        embedding: Callable,
        attention: keras.layers.Layer | None,
        use_causal_mask: bool = False,
    ) -> TokenStack:
        """The layers of an encoder after an embedding."""
        return TokenStack(
            embedding,
            self.positions(),
            self.dropout(),
            self.encoder_blocks(attention),
            self.last_norm(),
            options={"use_causal_mask": True} if use_causal_mask else {},
        )

    def last_norm(self, name: str = "norm") -> LayerNormalization | None:
        """The norm after the last block, where blocks are pre-norm."""
        if not self._sizes.norm_first:
            return None
        return LayerNormalization(epsilon=self._sizes.epsilon, dtype=self._dtype, name=name)

    def _self_attention(self) -> MultiHeadAttention:
        rotary = RotaryEmbedding() if self._sizes.rotary_positions else None
        return MultiHeadAttention(**self._attention, relative_positions=rotary)


def greatest_length(*limits: Any) -> int | None:
    """The least of numbers and of the `max_length` of layers, or `None` where none limits.

    Args:
        *limits: Numbers, layers and `None`.
    """
    lengths = [getattr(limit, "max_length", limit) for limit in limits]
    return min((length for length in lengths if isinstance(length, int)), default=None)


def share_positions(attentions: Sequence[Any]) -> None:
    """Gives all attention layers the first one's relative positions, before any is built."""
    first, *others = attentions
    for attention in others:
        if getattr(attention, "relative_positions", None) is not None:
            attention.relative_positions = first.relative_positions
