"""Sequences of token ids in one flat array, in memory or in a file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import tensorflow as tf

import keras_attn
from keras_attn.data.in_order import in_order
from keras_attn.data.stored.cache import EntryWriter, release
from keras_attn.data.stored.texts import StoredTexts
from keras_attn.data.stored.word_table import WordTable
from keras_attn.tokenizers import Tokenizer, pair_ids, word_pieces
from keras_attn.validation import require

FRAME = 2
"""Number of ids around a text with start and end ids."""

_TEXTS_A_CALL = 4096
_ROWS_A_BLOCK = 1 << 16
_NONE = -1

Blocks = Iterable[Sequence[str | bytes]]
"""Texts in pieces."""

NamedRows = dict[str, tuple[np.ndarray, np.ndarray]]
"""Rows of integers by name: all of them concatenated, int32, and their lengths, int64."""


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


class TokenRows:
    """Sequences of token ids: row `i` is `ids[offsets[i]:offsets[i + 1]]`.

    Rows that are selected, cut or framed share the array of the rows that they are made from, which
    may be a memory-mapped file.

    Args:
        ids: All sequences, concatenated, of any integer type.
        offsets: Where they begin and end, (rows + 1,) int64.

    Examples:
        >>> rows = TokenRows.from_texts(["cab", "a"], CharacterTokenizer("abc"))
        >>> rows.ids, rows.offsets
        (array([6, 4, 5, 2, 4, 2], dtype=int32), array([0, 4, 6]))
        >>> rows.padded(np.array([0, 1]), shape=(2, 4))
        array([[6, 4, 5, 2],
               [4, 2, 0, 0]], dtype=int32)
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray) -> None:
        offsets = np.asarray(offsets)
        if len(ids) <= np.iinfo(np.uint32).max:
            offsets = offsets.astype(np.uint32)
        none = np.broadcast_to(np.int32(_NONE), len(offsets) - 1)
        counts = np.diff(offsets).astype(np.int32)
        self._set(ids, offsets[:-1], counts, none, none)

    def _set(
        self,
        flat: np.ndarray,
        begins: np.ndarray,
        counts: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
    ) -> None:
        """Row `i` has `counts[i]` ids from `flat[begins[i]]` on, between `first[i]` and `last[i]`.

        Of these two, -1 means none.
        """
        self._flat, self._begins, self._counts = flat, begins, counts
        self._first, self._last = first, last

    @classmethod
    def _of(cls, *parts: np.ndarray) -> Self:
        rows = cls.__new__(cls)
        rows._set(*parts)
        return rows

    @classmethod
    def of_lengths(cls, ids: np.ndarray, lengths: np.ndarray) -> "TokenRows":
        """Rows of given lengths."""
        return cls(ids, offsets_of(lengths))

    @classmethod
    def from_texts(cls, texts: Sequence[str], tokenizer: Tokenizer) -> "TokenRows":
        """Tokenizes texts and appends the end id to each.

        Args:
            texts: The texts.
            tokenizer: Their tokenizer.

        Returns:
            A row for each text.
        """
        return cls.bare(texts, tokenizer).with_last(tokenizer.end_id)

    @classmethod
    def bare(cls, texts: Sequence[str], tokenizer: Tokenizer) -> "TokenRows":
        """Tokenizes texts without start and end ids.

        Args:
            texts: The texts. The ids of stored texts are stored too, in the same cache.
            tokenizer: Their tokenizer.

        Returns:
            A row for each text.
        """

        def rows(blocks: Blocks) -> Iterator[NamedRows]:
            if tokenizer.splits_at_spaces:
                return ({"ids": found} for found in WordTable(tokenizer).rows(blocks))
            return _in_graph(lambda strings: {"ids": tokenizer.tokenize(strings)}, blocks)

        return _tokenized("tokens", texts, tokenizer, rows)["ids"]

    def __len__(self) -> int:
        return len(self._begins)

    @property
    def ids(self) -> np.ndarray:
        """All rows, concatenated, int32."""
        return np.concatenate([np.zeros(0, np.int32), *self.blocks()])

    @property
    def offsets(self) -> np.ndarray:
        """Where the rows begin and end in `ids`, (rows + 1,) int64."""
        return offsets_of(self.lengths)

    @property
    def lengths(self) -> np.ndarray:
        """Length of each row, (rows,) int64."""
        return self.lengths_of(slice(None))

    def lengths_of(self, rows: np.ndarray | slice) -> np.ndarray:
        """Lengths of some rows, (count,) int64."""
        frame = (self._first[rows] != _NONE).astype(np.int64) + (self._last[rows] != _NONE)
        return self._counts[rows] + frame

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields the ids of all rows, int32, in pieces."""
        for begin in range(0, len(self), _ROWS_A_BLOCK):
            yield self._concatenated(slice(begin, begin + _ROWS_A_BLOCK))
            self.release()

    def release(self) -> None:
        """Gives back the memory of ids that are in a file."""
        release(self._flat)

    def row(self, index: int) -> np.ndarray:
        """The ids of a row, int32 (length,)."""
        return self._concatenated(slice(index, index + 1))

    def previous(self) -> np.ndarray:
        """The id before each row in the array that rows share, int32 (rows,)."""
        return self._flat[self._begins.astype(np.int64) - 1].astype(np.int32)

    def select(self, rows: np.ndarray | None) -> "TokenRows":
        """Some of the rows.

        Args:
            rows: Their indices, or a boolean array (rows,); `None` for all.
        """
        if rows is None:
            return self
        begins, counts = self._begins[rows], self._counts[rows]
        frame = (
            np.broadcast_to(ids[:1], begins.shape) if ids.strides == (0,) else ids[rows]
            for ids in (self._first, self._last)
        )
        return self._of(self._flat, begins, counts, *frame)

    def with_first(self, token_id: int) -> "TokenRows":
        """The rows with an id before each."""
        rows = self._without_frame() if (self._first != _NONE).any() else self
        first = np.broadcast_to(np.int32(token_id), len(rows))
        return self._of(rows._flat, rows._begins, rows._counts, first, rows._last)

    def with_last(self, token_id: int) -> "TokenRows":
        """The rows with an id after each."""
        rows = self._without_frame() if (self._last != _NONE).any() else self
        last = np.broadcast_to(np.int32(token_id), len(rows))
        return self._of(rows._flat, rows._begins, rows._counts, rows._first, last)

    def truncated(self, longest: int) -> "TokenRows":
        """The first `longest` ids of each row."""
        rows = self._without_frame()
        counts = np.minimum(rows._counts, np.int32(longest))
        return self._of(rows._flat, rows._begins, counts, rows._first, rows._last)

    def cut(self, longest: int) -> tuple["TokenRows", np.ndarray]:
        """Cuts every row into pieces of `longest` ids; the last piece may be shorter.

        Returns:
            The pieces, and the number of pieces of each row, (rows,) int64.
        """
        rows = self._without_frame() if (self._first != _NONE).any() else self
        whole = rows.lengths
        pieces = -(-whole // longest)  # rounded up
        ends = np.cumsum(pieces)
        number = np.arange(pieces.sum()) - np.repeat(ends - pieces, pieces)
        lengths = np.minimum(np.repeat(whole, pieces) - number * longest, longest)
        last = np.full(len(lengths), _NONE, np.int32)
        last[ends[pieces > 0] - 1] = rows._last[pieces > 0]
        begins = np.repeat(rows._begins, pieces) + number * longest
        first = np.broadcast_to(np.int32(_NONE), len(lengths))
        counts = (lengths - (last != _NONE)).astype(np.int32)
        return self._of(rows._flat, begins, counts, first, last), pieces

    def padded(self, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Returns rows as an array padded with 0.

        Args:
            rows: Indices of the rows, (count,) integers.
            shape: Shape of the array, (at least `count`, length).

        Returns:
            int32 of that shape: the rows, followed by rows of padding.
        """
        counts, first, last = self._counts[rows], self._first[rows], self._last[rows]
        batch = np.zeros(shape, np.int32)
        # Columns count from the first id of the array.
        columns = np.arange(shape[1]) - (first != _NONE)[:, None]  # (count, width)
        inside = (columns >= 0) & (columns < counts[:, None])
        places = self._begins[rows][:, None] + columns
        filled = batch[: len(counts)]
        filled[inside] = self._flat[places[inside]]
        for ids, column in ((first, 0), (last, counts + (first != _NONE))):
            there = np.flatnonzero(ids != _NONE)
            filled[there, np.broadcast_to(column, len(ids))[there]] = ids[there]
        return batch

    def marked(self, words: "TokenRows", numbers: np.ndarray) -> "TokenRows":
        """Rows of equal lengths with numbers at some places, and 0 everywhere else.

        Args:
            words: The places in each row.
            numbers: The numbers, one for each place of all rows.
        """
        flat = np.zeros(len(self._flat), np.int32)
        flat[np.repeat(self._begins, words.lengths) + words.ids] = numbers
        return self._of(flat, self._begins, self._counts, self._first, self._last)

    def halved(self, places: np.ndarray, lengths: np.ndarray) -> "TokenRows":
        """Two rows of each, one after the other: of what is before a place, and of what follows it.

        Args:
            places: The place in each row, (rows,) integers.
            lengths: How much of both is kept, from their beginnings, (rows, 2) integers.
        """
        rows = self._without_frame()
        begins = np.stack([rows._begins, rows._begins + places], axis=1).reshape(-1)
        none = np.broadcast_to(np.int32(_NONE), len(begins))
        return self._of(rows._flat, begins, lengths.reshape(-1).astype(np.int32), none, none)

    def joined_in_twos(self, between: int, times: int = 1) -> "TokenRows":
        """Rows 0 and 1, 2 and 3, … as one row each, with an id between them.

        Args:
            between: The id.
            times: How often it is between them, 1 or 2.
        """
        is_second = np.arange(len(self)) % 2 == 1
        last = np.where(is_second, _NONE, between).astype(np.int32)
        first = np.where(is_second & (times > 1), between, _NONE).astype(np.int32)
        rows = self._of(self._flat, self._begins, self._counts, first, last)
        ids = [block.astype(self._flat.dtype) for block in rows.blocks()]
        lengths = rows.lengths.reshape(-1, 2).sum(axis=1)
        return TokenRows.of_lengths(np.concatenate(ids), lengths)

    def _without_frame(self) -> "TokenRows":
        """The same rows, all their ids in one array."""
        if (self._first == _NONE).all() and (self._last == _NONE).all():
            return self
        return TokenRows(self.ids, self.offsets)

    def _concatenated(self, rows: slice) -> np.ndarray:
        begins, counts = self._begins[rows], self._counts[rows]
        first, last = self._first[rows], self._last[rows]
        lengths = self.lengths_of(rows)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        ids = np.empty(lengths.sum(), np.int32)
        inside = np.ones(len(ids), bool)
        for some, places in ((first, starts), (last, ends - 1)):
            framed = some != _NONE
            ids[places[framed]] = some[framed]
            inside[places[framed]] = False
        # Rows that follow each other in the array are copied together.
        stops = begins + counts
        apart = np.flatnonzero(begins[1:] != stops[:-1])
        runs = zip(
            begins[np.r_[0, apart + 1]].tolist(), stops[np.r_[apart, -1]].tolist(), strict=True
        )
        if len(begins):
            ids[inside] = np.concatenate([self._flat[begin:stop] for begin, stop in runs])
        return ids


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where rows of given lengths begin and end, (rows + 1,) int64."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def word_rows(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[TokenRows, TokenRows]:
    """Tokenizes the words of texts separately.

    Args:
        texts: The texts. What is made of stored texts is stored too, in the same cache.
        tokenizer: Tokenizer of the words.

    Returns:
        The ids of each text, and the places of its words in them, counted from 0.
    """

    def tokenize(strings: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        _, pieces = word_pieces(tokenizer, strings)
        ids = pieces.merge_dims(1, 2)
        starts = pieces.with_values(pieces.values.row_starts())
        return {"ids": ids, "words": starts - tf.expand_dims(ids.row_starts(), 1)}

    rows = _tokenized("words", texts, tokenizer, partial(_in_graph, tokenize))
    return rows["ids"], rows["words"]


def pair_rows(pairs: Sequence[str], tokenizer: Tokenizer) -> tuple[TokenRows, np.ndarray]:
    """Tokenizes pairs of texts, each a string with a tab between the texts.

    Args:
        pairs: The pairs. What is made of stored texts is stored too, in the same cache.
        tokenizer: Tokenizer of the texts.

    Returns:
        The ids of both texts of each pair, and how many of them are of the first, (pairs,).
    """

    def tokenize(strings: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        first, second = pair_ids(tokenizer, strings)
        lengths = tf.RaggedTensor.from_tensor(tf.expand_dims(first.row_lengths(), 1))
        return {"ids": tf.concat([first, second], axis=1), "first": lengths}

    rows = _tokenized("pairs", pairs, tokenizer, partial(_in_graph, tokenize))
    return rows["ids"], rows["first"].ids


def _tokenized(
    kind: str,
    texts: Sequence[str],
    tokenizer: Tokenizer,
    rows: Callable[[Blocks], Iterator[NamedRows]],
) -> dict[str, TokenRows]:
    """Turns texts into rows of integers, in the cache that they are in or in memory.

    Args:
        kind: Name of what is made, in the cache.
        texts: The texts.
        tokenizer: What `rows` depends on.
        rows: Makes the rows of texts in pieces.
    """
    if isinstance(texts, StoredTexts):
        return _stored(kind, texts, tokenizer, rows)
    begins = range(0, max(len(texts), 1), _TEXTS_A_CALL)
    blocks = list(rows(texts[at : at + _TEXTS_A_CALL] for at in begins))
    whole = {}
    for name in blocks[0]:
        ids, lengths = zip(*(block[name] for block in blocks), strict=True)
        whole[name] = TokenRows.of_lengths(np.concatenate(ids), np.concatenate(lengths))
    return whole


def _stored(
    kind: str,
    texts: StoredTexts,
    tokenizer: Tokenizer,
    rows: Callable[[Blocks], Iterator[NamedRows]],
) -> dict[str, TokenRows]:
    """`_tokenized` for stored texts: all of the column are tokenized, and the rows selected."""
    types = {"ids": np.uint16} if tokenizer.vocabulary_size <= 1 << 16 else {}

    def write(writer: EntryWriter) -> dict[str, Any]:
        names: list[str] = []
        for block in rows(texts.whole.blocks(_TEXTS_A_CALL)):
            names = list(block)
            for name, (values, lengths) in block.items():
                writer.add_rows(name, values.astype(types.get(name, np.int32)), lengths)
        return {"names": names}

    versions = [keras_attn.__version__, tf.__version__]
    key = {"texts": texts.digest, "tokenizer": tokenizer.digest, "versions": versions}
    entry = texts.cache.entry(kind, key, write)
    return {
        name: TokenRows(entry.arrays[name], entry.arrays[f"{name}.offsets"]).select(texts.rows)
        for name in entry.facts["names"]
    }


def _in_graph(
    tokenize: Callable[[tf.Tensor], dict[str, tf.RaggedTensor]], blocks: Blocks
) -> Iterator[NamedRows]:
    """Turns texts into rows of integers inside a graph, on all cores.

    Args:
        tokenize: From strings (batch,) to integers (batch, None) by name.
        blocks: The texts in pieces.

    Returns:
        The rows of each piece by name.
    """
    graph = tf.function(tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    # Called as it is: TensorFlow would warn of many graphs of the same function.
    tokenize = graph.get_concrete_function()

    def rows_of(texts: Sequence[str | bytes]) -> NamedRows:
        with tf.device("CPU"):
            found = tokenize(tf.constant(texts, tf.string))
        return {
            name: (
                rows.values.numpy().astype(np.int32, copy=False),
                rows.row_lengths().numpy().astype(np.int64, copy=False),
            )
            for name, rows in found.items()
        }

    return in_order(rows_of, blocks)
