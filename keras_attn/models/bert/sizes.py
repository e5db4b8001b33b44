"""Sizes of BERT, and the values in which the encoders that followed it differ."""

import dataclasses

from keras_attn.models.transformer.sizes import BertSizes
from keras_attn.validation import require, require_positive


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderSizes(BertSizes):
    """`BertSizes` and what BERT's successors change.

    Attributes:
        embedding_dim: Size of embedded tokens, positions and segments, from which a dense layer
            projects to `hidden_dim` (ALBERT, ELECTRA); `hidden_dim` without a projection by
            default.
        distinct_blocks: Number of blocks with weights of their own, each applied several times in a
            row (ALBERT); `num_layers` by default.
        absolute_positions: Whether learned positions are added to the embeddings; without them
            attention must see distances by itself.
        skip_padding: Whether positions are counted over real tokens alone, as in RoBERTa.
        share_positions: Whether all blocks share the relative positions of the first one's
            attention (MPNet, DeBERTa).
        norm_first: Whether blocks are pre-norm, with a norm after the last one; the first block's
            attention then takes the normalized embeddings as they are (ModernBERT).
        gated: Whether a linear projection multiplies the activation in the feed-forward networks.
        feed_forward_bias: Whether the dense layers of the feed-forward networks have biases.
        norm_bias: Whether normalizations have biases.

    Raises:
        UserError: As for `StackSizes`, or `distinct_blocks` exceeds `num_layers`.
    """

    embedding_dim: int | None = None
    distinct_blocks: int | None = None
    absolute_positions: bool = True
    skip_padding: bool = False
    share_positions: bool = False
    norm_first: bool = False
    gated: bool = False
    feed_forward_bias: bool = True
    norm_bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("embedding_dim", "distinct_blocks"):
            if getattr(self, name) is not None:
                require_positive(**{name: getattr(self, name)})
        require(
            (self.distinct_blocks or 1) <= self.num_layers,
            "`distinct_blocks` must not exceed `num_layers`.",
            distinct_blocks=self.distinct_blocks,
            num_layers=self.num_layers,
        )

    def order_of_blocks(self) -> list[int]:
        """The number of the block that is applied at each place."""
        distinct = self.distinct_blocks or self.num_layers
        return [place * distinct // self.num_layers for place in range(self.num_layers)]
