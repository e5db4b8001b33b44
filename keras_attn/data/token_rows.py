"""Sequences of token ids, concatenated in one array."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require

FRAME = 2
"""Number of ids around a text with start and end ids."""

_TEXTS_A_CALL = 8192


def require_room(max_length: int) -> None:
    """Raises a `UserError` unless a text with start and end ids can have a token between them."""
    require(
        max_length > FRAME,
        "`max_length` must be at least 3: a start, a token and an end.",
        max_length=max_length,
    )


def framed(rows: "TokenRows", tokenizer: Tokenizer) -> "TokenRows":
    """Puts the start and the end id around each row."""
    return rows.with_first(tokenizer.start_id).with_last(tokenizer.end_id)


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Sequences of token ids: row `i` is `ids[offsets[i]:offsets[i + 1]]`.

    Attributes:
        ids: All sequences, concatenated, int32.
        offsets: Where they begin and end, (rows + 1,) int64.

    Examples:
        >>> rows = TokenRows.from_texts(["cab", "a"], CharacterTokenizer("abc"))
        >>> rows.ids, rows.offsets
        (array([6, 4, 5, 2, 4, 2], dtype=int32), array([0, 4, 6]))
        >>> rows.padded(np.array([0, 1]), shape=(2, 4))
        array([[6, 4, 5, 2],
               [4, 2, 0, 0]], dtype=int32)
    """

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of_lengths(cls, ids: np.ndarray, lengths: np.ndarray) -> "TokenRows":
        """Rows of given lengths."""
        return cls(ids, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]))

    @classmethod
    def from_texts(cls, texts: list[str], tokenizer: Tokenizer) -> "TokenRows":
        """Tokenizes texts and appends the end id to each.

        Args:
            texts: The texts.
            tokenizer: Their tokenizer.

        Returns:
            A row for each text.
        """
        return cls.bare(texts, tokenizer).with_last(tokenizer.end_id)

    @classmethod
    def bare(cls, texts: list[str], tokenizer: Tokenizer) -> "TokenRows":
        """Tokenizes texts without start and end ids.

        Args:
            texts: The texts.
            tokenizer: Their tokenizer.

        Returns:
            A row for each text.
        """
        return cls.made_by(tokenizer.tokenize, texts)

    @classmethod
    def made_by(
        cls, tokenize: Callable[[tf.Tensor], tf.RaggedTensor], texts: list[str]
    ) -> "TokenRows":
        """Turns texts into ids, in large batches inside a graph.

        Args:
            tokenize: From strings (batch,) to ids (batch, None).
            texts: The texts.

        Returns:
            A row for each text.
        """
        graph = tf.function(tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
        # Called as it is: TensorFlow would warn of many graphs of the same function.
        tokenize = graph.get_concrete_function()
        flat, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        with tf.device("CPU"):
            for begin in range(0, len(texts), _TEXTS_A_CALL):
                ragged = tokenize(tf.constant(texts[begin : begin + _TEXTS_A_CALL], tf.string))
                flat.append(ragged.values.numpy().astype(np.int32, copy=False))
                lengths.append(ragged.row_lengths().numpy().astype(np.int64, copy=False))
        return cls.of_lengths(np.concatenate(flat), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def content(self) -> np.ndarray:
        """The data of all rows, used to check that all machines read the same data."""
        return self.ids

    @property
    def lengths(self) -> np.ndarray:
        """Length of each row, (rows,) int64."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def select(self, keep: np.ndarray) -> "TokenRows":
        """The rows where `keep`, boolean (rows,), is true."""
        return TokenRows.of_lengths(self.ids[np.repeat(keep, self.lengths)], self.lengths[keep])

    def with_first(self, token_id: int) -> "TokenRows":
        """The rows with an id before each."""
        ids = np.insert(self.ids, self.offsets[:-1], np.int32(token_id))
        return TokenRows.of_lengths(ids, self.lengths + 1)

    def with_last(self, token_id: int) -> "TokenRows":
        """The rows with an id after each."""
        ids = np.insert(self.ids, self.offsets[1:], np.int32(token_id))
        return TokenRows.of_lengths(ids, self.lengths + 1)

    def truncated(self, longest: int) -> "TokenRows":
        """The first `longest` ids of each row."""
        places = np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], self.lengths)
        return TokenRows.of_lengths(self.ids[places < longest], np.minimum(self.lengths, longest))

    def cut(self, longest: int) -> tuple["TokenRows", np.ndarray]:
        """Cuts every row into pieces of `longest` ids; the last piece may be shorter.

        Returns:
            The pieces, and the number of pieces of each row, (rows,) int64.
        """
        pieces = -(-self.lengths // longest)  # rounded up
        lengths = np.full(pieces.sum(), longest, np.int64)
        lengths[np.cumsum(pieces) - 1] = self.lengths - (pieces - 1) * longest
        return TokenRows.of_lengths(self.ids, lengths), pieces

    def padded(self, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Returns rows as an array padded with 0.

        Args:
            rows: Indices of the rows, (count,) integers.
            shape: Shape of the array, (at least `count`, length).

        Returns:
            int32 of that shape: the rows, followed by rows of padding.
        """
        begins, lengths = self.offsets[rows], self.lengths_of(rows)
        batch = np.zeros(shape, self.ids.dtype)
        columns = np.arange(shape[1])
        inside = columns < lengths[:, None]  # (count, width)
        batch[: len(begins)][inside] = self.ids[(begins[:, None] + columns)[inside]]
        return batch
