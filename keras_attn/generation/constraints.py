"""Constraints on generated texts: repetition, banned sequences, prefixes."""

import dataclasses

import numpy as np
from keras import ops

from keras_attn.generation.token_rules import token_set
from keras_attn.limits import RULE_TOKENS
from keras_attn.ops.padding import padding_last
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import is_integer, require


@dataclasses.dataclass(frozen=True)
class Constraints:
    """Rules about the tokens of a text, applied at every position of decoding.

    Tokens that would break a rule are not generated, but probabilities are not renormalized: the
    log-probability of a text is that of the model. The rules apply to the generated text, not to a
    prompt before it. If no token is allowed, a source has no hypothesis.

    Attributes:
        no_repeat_ngram: No sequence of this many tokens occurs twice in a text; 0 for no rule.
        banned: Sequences of token ids that must not occur in a text.
        prefix_ids: int32 (batch, length), the tokens with which each source's texts begin, without
            an end token; 0 is padding at any position. The other rules do not apply to them.

    Raises:
        UserError: A value is out of its range.

    Examples:
        >>> rules = Constraints(no_repeat_ngram=3, banned=((5, 7),))  # never 5 and then 7
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> start_ids, state = model.prefill(np.array([[1, 5, 9], [1, 7, 0]]), max_length=6)
        >>> found = greedy_search(
        ...     model.step, state, start_ids, end_id=2, max_length=6, constraints=rules
        ... )
        >>> found.token_ids.shape
        (2, 1, 6)
    """

    no_repeat_ngram: int = 0
    banned: tuple[tuple[int, ...], ...] = ()
    prefix_ids: TensorLike = None

    def __post_init__(self) -> None:
        require(
            is_integer(self.no_repeat_ngram) and self.no_repeat_ngram >= 0,
            "`no_repeat_ngram` must be an integer of 0 or more, 0 for no rule.",
            no_repeat_ngram=self.no_repeat_ngram,
        )
        size = self.no_repeat_ngram
        RULE_TOKENS.check(size, f"`no_repeat_ngram`={size}")
        for sequence in self.banned:
            require(
                isinstance(sequence, tuple | list)
                and len(sequence) > 0
                and all(is_integer(token) and token >= 0 for token in sequence),
                "`banned` must contain sequences of token ids of 0 or more, none of them empty.",
                sequence=sequence,
            )
            RULE_TOKENS.check(len(sequence), "`banned`")
        if self.prefix_ids is not None and len(np.shape(self.prefix_ids)) == 2:
            object.__setattr__(self, "prefix_ids", padding_last(self.prefix_ids))

    def check_sources(self, sources: Tensor) -> None:
        """Checks that there is one prefix for each source, if their numbers are known.

        Args:
            sources: Number of sources.

        Raises:
            UserError: The prefixes have another rank or number.
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
        """Whether there is no rule."""
        return not self.no_repeat_ngram and not self.banned and self.prefix_ids is None

    def banned_tokens(self, token_ids: Tensor, index: TensorLike, vocabulary: int) -> Tensor:
        """Finds the tokens that are not allowed next.

        Args:
            token_ids: int32 (rows, max_length), whose first `index` tokens are used; the same
                number of rows for each source, source by source.
            index: int scalar.
            vocabulary: The count of tokens.

        Returns:
            bool (rows, vocabulary), or None if there is no rule.

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
                "`banned` must contain token ids below the vocabulary size of the logits.",
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
    # The last token of each complete sequence of `size` tokens: the first is at `size - 1`.
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
    """The last tokens of sequences whose other tokens have just been generated."""
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
    """All tokens except that of the prefix, and the banned tokens after the prefix."""
    prefix_ids = ops.cast(ops.convert_to_tensor(prefix_ids), "int32")
    rows, sources = ops.shape(token_ids)[0], ops.shape(prefix_ids)[0]
    # 0 after its end, and if it has no column.
    prefix_ids = ops.pad(prefix_ids, ((0, 0), (0, 1)))
    wanted = _token_at(prefix_ids, ops.minimum(index, ops.shape(prefix_ids)[1] - 1))
    wanted = ops.take(wanted, ops.arange(rows) // (rows // sources), axis=0)  # (rows, 1)
    others = ops.arange(vocabulary) != wanted
    if is_banned is None:
        is_banned = ops.zeros_like(others)
    return ops.where(wanted != 0, others, is_banned)


def _token_at(token_ids: Tensor, place: Tensor) -> Tensor:
    """The tokens at a position, (rows, 1); any token for positions before the first."""
    return ops.take(token_ids, ops.maximum(place, 0), axis=1)[:, None]
