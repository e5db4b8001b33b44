"""Checks texts and turns them into padded batches of token ids."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attn.ops.padding import padding_last
from keras_attn.tasks.hypothesis import length_sorted_batches
from keras_attn.tokenizers import Tokenizer, shared_lengths
from keras_attn.validation import UserError, require

_EXAMPLE_LENGTHS = (5, 1, 9)
_MOST_TRIED = 4096  # tokens, for the words in example texts
_WORDS_A_TOKEN = 8  # more than any tokenizer joins


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Checks that the argument is several Unicode texts.

    Args:
        name: Name of the argument in error messages.
        texts: The texts.

    Returns:
        The texts as a list.

    Raises:
        UserError: The argument is a single string, or an item is not Unicode text.
    """
    if isinstance(texts, str | bytes):
        raise UserError(f"`{name}` must be several texts, not one. Received: {shortened(texts)!r}.")
    texts = list(texts)
    for position, text in enumerate(texts):
        require(_is_unicode(text), f"`{name}[{position}]` must be Unicode text.", text=text)
    return texts


def check_pairs(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Checks that every source has a target.

    Args:
        sources: The source texts.
        targets: One target for each source.

    Returns:
        Both as lists.

    Raises:
        UserError: Their numbers differ, or an item is not text.
    """
    sources, targets = check_texts("sources", sources), check_texts("targets", targets)
    require(
        len(sources) == len(targets),
        "Every source must have one target.",
        sources=len(sources),
        targets=len(targets),
    )
    return sources, targets


def shortened(text: str | bytes) -> str | bytes:
    """Shortens a text for an error message."""
    most = 40
    if len(text) <= most:
        return text
    return text[:most] + "…" if isinstance(text, str) else text[:most] + b"..."


def _is_unicode(text: object) -> bool:
    # A lone surrogate, from malformed input, would be replaced.
    return isinstance(text, str) and text.encode(errors="replace").decode() == text


def beginning(text: str, tokens: int) -> str:
    """Leaves out what is never read of a text with far more words than tokens that are read.

    Args:
        text: The text, which may have millions of words.
        tokens: Number of tokens that are read.

    Examples:
        >>> len(beginning("no " * 1_000_000, 100)), beginning("no no", 100)
        (2400, 'no no')
    """
    most = _WORDS_A_TOKEN * tokens
    words = text.split(None, most) if len(text) > most else []
    return text[: -len(words[most])] if len(words) > most else text


FRAME = 2
"""Number of special tokens around a text with start and end tokens."""


def check_framed_length(backbone: keras.Model, max_length: int) -> None:
    """Raises unless a model has the positions for texts between a start and an end token.

    Args:
        backbone: The model, which may have a `max_length`.
        max_length: Maximum number of tokens of a text, including start and end tokens.

    Raises:
        UserError: `max_length` is less than 3, or exceeds the model's positions.
    """
    require(
        max_length > FRAME,
        "`max_length` must leave room for a token between start and end.",
        max_length=max_length,
    )
    check_positions(backbone, max_length, max_length=max_length)


def check_positions(
    backbone: keras.Model,
    needed: int,
    expectation: str = "`max_length` must not exceed the model's positions.",
    **received: int,
) -> None:
    """Raises unless a model has as many positions as a task needs, or any number of them.

    Args:
        backbone: The model.
        needed: Number of positions that the task needs.
        expectation: What the error message says of the lengths that it shows.
        **received: The task's lengths, by name.

    Raises:
        UserError: The model has too few positions.
    """
    positions = getattr(backbone, "max_length", None)
    require(positions is None or needed <= positions, expectation, positions=positions, **received)


def batches_by_length(
    tokenizer: Tokenizer,
    texts: list[str],
    what: str,
    longest: int,
    frame: int = 1,
    truncate: bool = False,
) -> list[list[int]]:
    """Puts texts of similar lengths together.

    Args:
        tokenizer: Of the texts.
        texts: The texts.
        what: Name of a text in error messages, such as "source text".
        longest: Maximum number of tokens of a text, including its frame.
        frame: Number of tokens put around a text: its end alone by default.
        truncate: Whether what is too long will be cut.

    Returns:
        For each batch the positions of its texts.

    Raises:
        UserError: A text is too long, and not to be cut.
    """
    if not texts:
        return []
    lengths = tokenizer.tokenize(tf.constant(texts)).row_lengths() + frame
    return fitting_batches(texts, lengths.numpy().tolist(), what, longest, frame, truncate)


def fitting_batches(
    texts: list[str],
    lengths: list[int],
    what: str,
    longest: int,
    frame: int,
    truncate: bool = False,
) -> list[list[int]]:
    """Puts texts of similar lengths together, after a look at whether one is too long.

    Args:
        texts: The texts.
        lengths: Numbers of their tokens, those of their frames included.
        what: Name of a text in error messages, such as "source text".
        longest: Maximum number of tokens of a text, including its frame.
        frame: Number of tokens put around a text.
        truncate: Whether what is too long will be cut.

    Returns:
        For each batch the positions of its texts.

    Raises:
        UserError: A text is too long, and not to be cut.
    """
    for text, length in zip(texts, lengths, strict=True):
        if length > longest and not truncate:
            raise UserError(
                f"A {what} must have at most {longest - frame} tokens. "
                f"Received: {length - frame} tokens in {shortened(text)!r}."
            )
    return length_sorted_batches([min(length, longest) for length in lengths], budget=4096)


def ids_with_end(
    tokenizer: Tokenizer, texts: tf.Tensor, max_length: int, what: str, truncate: bool = False
) -> tf.Tensor:
    """Turns texts into ids inside a graph, an end id after each and 0 as padding.

    Args:
        tokenizer: Of the texts.
        texts: Strings (batch,).
        max_length: Maximum number of tokens of a text, including its end token.
        what: Name of a text in error messages, such as "source text".
        truncate: Whether the end of a longer text is left out.

    Returns:
        int32 (batch, length).

    Raises:
        InvalidArgumentError: A text is longer and not to be cut, when the graph runs.
    """
    if truncate:
        ids = tokenizer.tokenize(texts)[:, : max_length - 1]
    else:
        ids = fitting_ids(tokenizer, texts, max_length, what)
    end = tf.fill([ids.nrows(), 1], tf.constant(tokenizer.end_id, ids.dtype))
    return padded(tf.concat([ids, end], axis=1))


def framed_ids(
    tokenizer: Tokenizer, texts: tf.Tensor, max_length: int, what: str, truncate: bool
) -> tf.Tensor:
    """Turns texts into ids inside a graph, between a start and an end id, with 0 as padding.

    Args:
        tokenizer: Of the texts.
        texts: Strings (batch,).
        max_length: Maximum number of tokens of a text, including start and end tokens.
        what: Name of a text in error messages, such as "source text".
        truncate: Whether the end of a longer text is left out.

    Returns:
        int32 (batch, length).

    Raises:
        InvalidArgumentError: A text is longer and not to be cut, when the graph runs.
    """
    if truncate:
        ids = tokenizer.tokenize(texts)[:, : max_length - 2]
    else:
        ids = fitting_ids(tokenizer, texts, max_length - 1, what)
    return framed(tokenizer, ids)


def joined_ids(
    tokenizer: Tokenizer,
    first: tf.RaggedTensor,
    second: tf.RaggedTensor,
    room: int,
    truncate: bool,
    ends_between: int = 1,
) -> tf.RaggedTensor:
    """Puts the ids of pairs of texts together inside a graph, end ids between both.

    Args:
        tokenizer: Of the texts.
        first: Ids of the first texts, int32 (batch, None), ragged.
        second: Ids of the second texts.
        room: Greatest number of tokens of both texts.
        truncate: Whether the ends of longer texts are left out (see `shared_lengths`).
        ends_between: Number of end ids between both, 1 or 2.

    Returns:
        int32 (batch, None), ragged.

    Raises:
        InvalidArgumentError: A pair is longer and not to be cut, when the graph runs.
    """
    if truncate:
        kept = shared_lengths(first.row_lengths(), second.row_lengths(), room)
        first, second = (
            tf.RaggedTensor.from_tensor(ids.to_tensor(), lengths)
            for ids, lengths in zip((first, second), kept, strict=True)
        )
    ends = tf.fill([first.nrows(), ends_between], tf.constant(tokenizer.end_id, first.dtype))
    ids = tf.concat([first, ends, second], axis=1)
    what = f"pair of texts, with the end{'s' * (ends_between > 1)} between both,"
    return ids if truncate else fitting(ids, room + ends_between + 1, what)


def framed(tokenizer: Tokenizer, ids: tf.RaggedTensor, with_start: bool = True) -> tf.Tensor:
    """Puts start and end ids around ragged ids inside a graph, and pads them with 0.

    Args:
        tokenizer: Tokenizer with the special ids.
        ids: int32 (batch, None), ragged.
        with_start: Whether the start id is before them.

    Returns:
        int32 (batch, length).
    """
    start, end = (
        tf.fill([ids.nrows(), 1], tf.constant(special, ids.dtype))
        for special in (tokenizer.start_id, tokenizer.end_id)
    )
    return padded(tf.concat([*([start] if with_start else []), ids, end], axis=1))


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Pads ragged ids with 0, inside a graph.

    Args:
        ids: int32 (batch, None), ragged.

    Returns:
        int32 (batch, length) with a length of at least 1, even of an empty batch.
    """
    return _with_a_column(ids.to_tensor())


def real_ids(ids: tf.Tensor) -> tf.Tensor:
    """Moves padding to the end of each row, inside a graph.

    Args:
        ids: int32 (batch, length), 0 at padding, at any position.

    Returns:
        int32 (batch, length) with padding at the end and a length of at least 1.
    """
    return _with_a_column(padding_last(ids))


def _with_a_column(ids):
    missing = tf.cast(tf.shape(ids)[1] == 0, tf.int32)
    return tf.pad(ids, [[0, 0], [0, missing]])


def fitting_ids(
    tokenizer: Tokenizer, texts: tf.Tensor, max_length: int, what: str
) -> tf.RaggedTensor:
    """Tokenizes texts inside a graph and checks their lengths.

    Args:
        tokenizer: Of the texts.
        texts: Strings (batch,).
        max_length: Exclusive upper bound of a text's number of tokens.
        what: Name of a text in error messages, such as "source text".

    Returns:
        int32 (batch, None), ragged.

    Raises:
        InvalidArgumentError: A text is longer, when the graph runs.
    """
    return fitting(tokenizer.tokenize(texts), max_length, what)


def fitting(ids: tf.RaggedTensor, max_length: int, what: str) -> tf.RaggedTensor:
    """Checks the lengths of ids inside a graph, and returns the ids.

    Args:
        ids: int32 (batch, None), ragged.
        max_length: Exclusive upper bound of a text's number of tokens.
        what: Name of a text in error messages, such as "source text".

    Raises:
        InvalidArgumentError: A text is longer, when the graph runs.
    """
    longest = tf.reduce_max(tf.concat([[0], tf.cast(ids.row_lengths(), tf.int32)], axis=0))
    fits = tf.debugging.Assert(
        longest < max_length,
        [f"The {what} must have at most {max_length - 1} tokens. Received:", longest],
    )
    with tf.control_dependencies([] if fits is None else [fits]):
        return ids.with_values(tf.identity(ids.values))


def label_log_probabilities(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Computes the log-probability of each label.

    Args:
        labels: int32 (batch, length), 0 at padding.
        logits: Floating, (batch, length, vocabulary).

    Returns:
        float32 (batch, length), 0 at padding.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
    return -tf.where(labels != 0, losses, 0.0)


def example_texts(tokenizer: Tokenizer, max_length: int) -> list[str]:
    """Makes a few texts of different lengths from a tokenizer's most frequent words.

    Args:
        tokenizer: Tokenizer of the texts.
        max_length: Exclusive upper bound of a text's number of tokens.

    Returns:
        The texts.
    """
    special = {tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id}
    ids: Sequence[int] = range(max(special) + 1, tokenizer.vocabulary_size)
    if not ids:  # the last token is special
        ids = sorted(set(range(tokenizer.vocabulary_size)) - special)
    ids = _words_among(tokenizer, ids)
    rows = [list(ids[: min(length, max_length - 1)]) for length in _EXAMPLE_LENGTHS]
    texts = tokenizer.detokenize(tf.ragged.constant(rows, tf.int32))
    # An arbitrary order of tokens may be tokenized again as more tokens.
    lengths = tokenizer.tokenize(texts).row_lengths().numpy()
    pairs = zip(texts.numpy(), lengths, strict=True)
    return [text.decode() for text, length in pairs if length < max_length] or [""]


def _words_among(tokenizer: Tokenizer, ids: Sequence[int]) -> Sequence[int]:
    """Chooses the tokens that are words of three letters or more, if there are enough."""
    texts = tokenizer.detokenize(tf.ragged.constant([[one] for one in ids[:_MOST_TRIED]], tf.int32))
    words = [
        one
        for one, text in zip(ids, texts.numpy(), strict=False)
        if len(word := text.decode("utf-8", "replace").strip()) > 2 and word.isalpha()
    ]
    return words if len(words) >= max(_EXAMPLE_LENGTHS) else ids
