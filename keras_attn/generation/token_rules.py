"""Allowed tokens of each position, and the most probable of them."""

import dataclasses
import math
import numbers

import numpy as np
from keras import ops

from keras_attn.ops.softmax import softmax_with_sums
from keras_attn.ops.top_k import top_k
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import is_integer, require, require_positive


@dataclasses.dataclass(frozen=True)
class TokenRules:
    """The allowed tokens of each position.

    The end token is not allowed before `min_length` and is the only allowed token at `max_length`.
    Probabilities are not renormalized: the log-probability of a hypothesis is that of the model.

    Args:
        end_id: The token that ends a hypothesis.
        max_length: Most tokens of a hypothesis, the end token included; an int, or a scalar int
            tensor where the backend has dynamic shapes (TensorFlow without XLA).
        min_length: Fewest tokens of a hypothesis, the end token included.
        forbidden_ids: Tokens that are never allowed.
        forced_end_is_free: Whether the end token gets probability 1 if it is the only allowed
            token.

    Raises:
        UserError: A value is out of its range.
    """

    end_id: int
    max_length: TensorLike
    min_length: int = 0
    forbidden_ids: tuple[int, ...] = ()
    forced_end_is_free: bool = False

    def __post_init__(self) -> None:
        ids = (self.end_id, *self.forbidden_ids)
        require(
            all(is_integer(token) and token >= 0 for token in ids),
            "`end_id` and `forbidden_ids` must be token ids of 0 or more.",
            end_id=self.end_id,
            forbidden_ids=self.forbidden_ids,
        )
        require(
            self.end_id not in self.forbidden_ids,
            "`forbidden_ids` must not contain `end_id`, or no text could end.",
            end_id=self.end_id,
            forbidden_ids=self.forbidden_ids,
        )
        require(
            is_integer(self.min_length) and self.min_length >= 0,
            "`min_length` must be an integer of 0 or more.",
            min_length=self.min_length,
        )
        if self.max_length is None or isinstance(self.max_length, numbers.Number | str):
            require_positive(max_length=self.max_length)
            require(
                is_integer(self.max_length) and self.min_length <= self.max_length,
                "`min_length` must not exceed `max_length`.",
                min_length=self.min_length,
                max_length=self.max_length,
            )

    def rank(
        self, logits: Tensor, index: TensorLike, count: int, dtype: str, is_banned: Tensor = None
    ) -> tuple[Tensor, Tensor]:
        """Finds the most probable allowed tokens of each row.

        Args:
            logits: float (rows, vocabulary), of any float type; `-inf` for tokens that the model
                excludes. Tokens of a row with NaN have no probability.
            index: int scalar, the number of tokens generated so far.
            count: Number of tokens to find. The result may have more columns, or fewer if the
                vocabulary is smaller.
            dtype: Dtype of the computation.
            is_banned: bool (rows, vocabulary), tokens that are not allowed; None for no tokens.

        Returns:
            log_probabilities: dtype (rows, columns), `-inf` for tokens that are not allowed.
            token_ids: int32 (rows, columns).
        """
        vocabulary = self._check_vocabulary(logits)
        logits = ops.cast(logits, dtype)
        columns = min(count + len(self.forbidden_ids), vocabulary)
        normalizer = log_normalizer(logits)
        if is_banned is not None:
            logits = ops.where(is_banned, -math.inf, logits)
        best, token_ids = top_k(logits, columns)

        log_probabilities = best - normalizer
        length = index + 1
        offered = ops.logical_or(token_ids != self.end_id, length >= self.min_length)
        for token in self.forbidden_ids:
            offered = ops.logical_and(offered, token_ids != token)
        end = logits[:, self.end_id : self.end_id + 1] - normalizer
        if self.forced_end_is_free:
            end = ops.where(ops.abs(normalizer) < math.inf, ops.zeros_like(end), end)
        # Only the first column may contain the end token, or it would occur `columns` times.
        end = ops.where(ops.arange(columns) == 0, end, -math.inf)
        is_last = length >= self.max_length
        log_probabilities = ops.where(
            is_last, end, ops.where(offered, log_probabilities, -math.inf)
        )
        return finite_or_none(log_probabilities), ops.where(is_last, self.end_id, token_ids)

    def offer(self, logits: Tensor, index: TensorLike) -> Tensor:
        """Returns the logits, with `-inf` for tokens that are not allowed.

        Args:
            logits: float (rows, vocabulary).
            index: int scalar, the number of tokens generated so far.

        Returns:
            Logits of the same shape and dtype.
        """
        tokens = np.arange(self._check_vocabulary(logits))
        is_end = ops.convert_to_tensor(tokens == self.end_id)
        is_other = ops.convert_to_tensor(
            np.isin(tokens, (self.end_id, *self.forbidden_ids), invert=True)
        )
        length = index + 1
        offered = ops.logical_or(
            ops.logical_and(is_end, length >= self.min_length),
            ops.logical_and(is_other, length < self.max_length),
        )
        return ops.where(offered, logits, -math.inf)

    def _check_vocabulary(self, logits: Tensor) -> int:
        vocabulary = logits.shape[-1]
        require(
            vocabulary is not None and max(self.end_id, *self.forbidden_ids, 0) < vocabulary,
            "`end_id` and `forbidden_ids` must be below the vocabulary size of the logits.",
            end_id=self.end_id,
            forbidden_ids=self.forbidden_ids,
            vocabulary=vocabulary,
        )
        return vocabulary


def log_normalizer(logits: Tensor) -> Tensor:
    """Returns the difference of logits (rows, vocabulary) and log-probabilities, (rows, 1)."""
    _, peak, total = softmax_with_sums(logits)
    return peak + ops.log(total)


def finite_or_none(log_probabilities: Tensor) -> Tensor:
    """Returns log-probabilities, with `-inf` for rows without a distribution."""
    # A row with NaN, or with only -inf, has become NaN or, with XLA, whose maximum may ignore NaN,
    # infinity.
    is_finite = ops.abs(log_probabilities) < math.inf
    return ops.where(is_finite, log_probabilities, -math.inf)


def token_set(token_ids: Tensor, counted: Tensor, vocabulary: int) -> Tensor:
    """Finds the tokens of the vocabulary that occur in each row.

    Args:
        token_ids: int32 (rows, length).
        counted: bool (rows, length), False for tokens to ignore.
        vocabulary: Number of tokens.

    Returns:
        bool (rows, vocabulary).
    """
    rows = ops.shape(token_ids)[0]
    # One-dimensional: the place of a token in the flat matrix.
    places = token_ids + ops.arange(rows)[:, None] * vocabulary
    places = ops.reshape(places, (-1, 1))
    counts = ops.reshape(ops.cast(counted, "int32"), (-1,))
    counts = ops.scatter(places, counts, (rows * vocabulary,))
    return ops.reshape(counts, (rows, vocabulary)) > 0
