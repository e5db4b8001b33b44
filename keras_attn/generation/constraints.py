"""What a text may not hold, and what it must begin with."""

import dataclasses

import numpy as np
from keras import ops

from keras_attn.generation.token_sets import token_set
from keras_attn.limits import RULE_TOKENS
from keras_attn.ops.padding import padding_last
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import is_integer, require


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Rules about the tokens of a text, kept at every position of decoding.

    A token that would break one is not offered, and keeps its share of probability: the
    log-probability of a text is that under the model, whatever the rules. They look at what is
    generated, not at a prompt before it. Where no token is left a source has no hypothesis.

    Attributes:
        no_repeat_ngram: No run of so many tokens occurs twice in a text; 0 for no such rule.
        banned: Sequences of token ids that do not occur in a text.
        prefix_ids: int32 (batch, length), the tokens that each source's texts begin with, the end
            token not among them; 0 is padding wherever it stands. They stand whatever the other
            two forbid.

    Raises:
        UserError: A value is out of its range.
    """

    no_repeat_ngram: int = 0
    banned: tuple[tuple[int, ...], ...] = ()
    prefix_ids: TensorLike = None

    def __post_init__(self) -> None:
        require(
            is_integer(self.no_repeat_ngram) and self.no_repeat_ngram >= 0,
            "`no_repeat_ngram` must be an integer of 0 or more, 0 for no such rule.",
            no_repeat_ngram=self.no_repeat_ngram,
        )
        size = self.no_repeat_ngram
        RULE_TOKENS.check(size, f"`no_repeat_ngram`={size}")
        for sequence in self.banned:
            require(
                isinstance(sequence, tuple | list)
                and len(sequence) > 0
                and all(is_integer(token) and token >= 0 for token in sequence),
                "`banned` must hold sequences of token ids of 0 or more, none of them empty.",
                sequence=sequence,
            )
            RULE_TOKENS.check(len(sequence), "`banned`")
        if self.prefix_ids is not None and len(np.shape(self.prefix_ids)) == 2:
            object.__setattr__(self, "prefix_ids", padding_last(self.prefix_ids))

    def check_sources(self, sources: Tensor) -> None:
        """Finds prefixes that are not one for each source, as far as their numbers are known.

        Args:
            sources: Number of sources.

        Raises:
            UserError: The prefixes have another rank, or are more or fewer.
        """
        if self.prefix_ids is None:
            return
        prefix_ids = ops.convert_to_tensor(self.prefix_ids)
        known = isinstance(sources, int) and isinstance(prefix_ids.shape[0], int)
        require(
            len(prefix_ids.shape) == 2 and not (known and prefix_ids.shape[0] != sources),
            "`prefix_ids` must have one row for each source.",
            shape=tuple(prefix_ids.shape),
            sources=sources,
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no rule at all."""
        return not self.no_repeat_ngram and not self.banned and self.prefix_ids is None

    def banned_tokens(self, token_ids: Tensor, index: TensorLike, vocabulary: int) -> Tensor:
        """Which tokens may not come next.

        Args:
            token_ids: int32 (rows, max_length), of which the first `index` count; rows source by
                source, of each source as many.
            index: int scalar.
            vocabulary: The count of tokens.

        Returns:
            bool (rows, vocabulary), or None where there is no rule.

        Raises:
            UserError: A banned token is not in the vocabulary.
        """
        is_banned = None
        if self.no_repeat_ngram:
            is_banned = _repeating(token_ids, index, self.no_repeat_ngram, vocabulary)
        if self.banned:
            largest = max(max(sequence) for sequence in self.banned)
            require(
                largest < vocabulary,
                "`banned` must hold token ids below the vocabulary size of the logits.",
                largest=largest,
                vocabulary=vocabulary,
            )
            completing = _completing(token_ids, index, self.banned, vocabulary)
            is_banned = completing if is_banned is None else ops.logical_or(is_banned, completing)
        if self.prefix_ids is not None:
            is_banned = _off_the_prefix(self.prefix_ids, token_ids, index, vocabulary, is_banned)
        return is_banned


def _repeating(token_ids: Tensor, index: TensorLike, size: int, vocabulary: int) -> Tensor:
    """The tokens that have followed the last `size - 1` tokens before."""
    # The last token of each run of `size` that is complete: at position `size - 1` the first.
    places = ops.arange(ops.shape(token_ids)[1])
    is_same = ops.logical_and(places >= size - 1, places < index)[None]
    for back in range(1, size):
        last = _token_at(token_ids, index - back)
        is_same = ops.logical_and(is_same, ops.roll(token_ids, back, axis=1) == last)
    is_same = ops.broadcast_to(is_same, ops.shape(token_ids))
    return token_set(token_ids, is_same, vocabulary)


def _completing(
    token_ids: Tensor, index: TensorLike, sequences: tuple[tuple[int, ...], ...], vocabulary: int
) -> Tensor:
    """The last tokens of those sequences all of whose others have just come."""
    lengths = np.array([len(sequence) for sequence in sequences], "int32")
    is_reached = ops.convert_to_tensor(lengths - 1)[None] <= index
    for back in range(1, max(lengths)):
        is_inside = back < lengths
        wanted = [sequence[-1 - back] if back < len(sequence) else 0 for sequence in sequences]
        is_same = _token_at(token_ids, index - back) == np.array(wanted, "int32")
        is_reached = ops.logical_and(is_reached, ops.logical_or(is_same, ~is_inside))
    rows = ops.shape(token_ids)[0]
    shape = (rows, len(sequences))
    lasts = np.array([sequence[-1] for sequence in sequences], "int32")
    return token_set(
        ops.broadcast_to(ops.convert_to_tensor(lasts), shape),
        ops.broadcast_to(is_reached, shape),
        vocabulary,
    )


def _off_the_prefix(
    prefix_ids: TensorLike, token_ids: Tensor, index: TensorLike, vocabulary: int, is_banned: Tensor
) -> Tensor:
    """All but the prefix's token where there is one, what is banned elsewhere."""
    prefix_ids = ops.cast(ops.convert_to_tensor(prefix_ids), "int32")
    rows, sources = ops.shape(token_ids)[0], ops.shape(prefix_ids)[0]
    # 0 beyond its end, and where it has no column at all.
    prefix_ids = ops.pad(prefix_ids, ((0, 0), (0, 1)))
    wanted = _token_at(prefix_ids, ops.minimum(index, ops.shape(prefix_ids)[1] - 1))
    wanted = ops.take(wanted, ops.arange(rows) // (rows // sources), axis=0)  # (rows, 1)
    others = ops.arange(vocabulary) != wanted
    if is_banned is None:
        is_banned = ops.zeros_like(others)
    return ops.where(wanted != 0, others, is_banned)


def _token_at(token_ids: Tensor, place: Tensor) -> Tensor:
    """The tokens at a position, (rows, 1); any token where it lies before the first."""
    return ops.take(token_ids, ops.maximum(place, 0), axis=1)[:, None]
