"""Checks texts and turns them into padded batches of token ids."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attn.ops.padding import padding_last
from keras_attn.tasks.hypothesis import length_sorted_batches
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Makes sure that several Unicode texts were given.

    Args:
        name: What they are called in an error.
        texts: The texts.

    Returns:
        The texts as a list.

    Raises:
        UserError: A single string was given, or something that is no Unicode text.
    """
    if isinstance(texts, str | bytes):
        raise UserError(f"`{name}` must be several texts, not one. Received: {shortened(texts)!r}.")
    texts = list(texts)
    for position, text in enumerate(texts):
        require(_is_unicode(text), f"`{name}[{position}]` must be Unicode text.", text=text)
    return texts


def check_pairs(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Makes sure that every source has a target.

    Args:
        sources: The texts that go in.
        targets: A text for each.

    Returns:
        Both as lists.

    Raises:
        UserError: Their numbers differ, or one of them is no text.
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
    """The text, or its beginning where it is too long for an error."""
    most = 40
    return text if len(text) <= most else text[:most] + ("…" if isinstance(text, str) else b"...")


def _is_unicode(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, such as Python makes of malformed input
        return False
    return True


FRAME = 2
"""Number of tokens around a text that begins with a start and ends with an end token."""


def check_framed_length(backbone: keras.Model, max_length: int) -> None:
    """Raises unless a model has the positions for texts between a start and an end token.

    Args:
        backbone: The model, which may have a `max_length`.
        max_length: Most tokens of a text, start and end included.

    Raises:
        UserError: There is no room for a token, or there are more than positions.
    """
    require(
        max_length > FRAME,
        "`max_length` must leave room for a token between start and end.",
        max_length=max_length,
    )
    positions = getattr(backbone, "max_length", None)
    require(
        positions is None or max_length <= positions,
        "`max_length` must not exceed the model's positions.",
        positions=positions,
        max_length=max_length,
    )


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
        what: What a text is called in an error, such as "source text".
        longest: Most tokens of a text, those of its frame included.
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
        what: What a text is called in an error, such as "source text".
        longest: Most tokens of a text, those of its frame included.
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


def ids_with_end(tokenizer: Tokenizer, texts: tf.Tensor, max_length: int, what: str) -> tf.Tensor:
    """Turns texts into ids inside a graph, an end id after each and 0 as padding.

    Args:
        tokenizer: Of the texts.
        texts: Strings (batch,).
        max_length: Most tokens of a text, its end token included.
        what: What a text is called in an error, such as "source text".

    Returns:
        int32 (batch, length).

    Raises:
        InvalidArgumentError: A text is longer, when the graph runs.
    """
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
        max_length: Most tokens of a text, start and end included.
        what: What a text is called in an error, such as "source text".
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


def framed(tokenizer: Tokenizer, ids: tf.RaggedTensor) -> tf.Tensor:
    """Puts ids between a start and an end id inside a graph, with 0 as padding.

    Args:
        tokenizer: Has the ids.
        ids: int32 (batch, None), ragged.

    Returns:
        int32 (batch, length).
    """
    start, end = (
        tf.fill([ids.nrows(), 1], tf.constant(special, ids.dtype))
        for special in (tokenizer.start_id, tokenizer.end_id)
    )
    return padded(tf.concat([start, ids, end], axis=1))


def padded(ids: tf.RaggedTensor) -> tf.Tensor:
    """Turns ragged ids into a tensor inside a graph, with 0 as padding.

    Args:
        ids: int32 (batch, None), ragged.

    Returns:
        int32 (batch, length) with a length of at least 1, even of an empty batch.
    """
    return _with_a_column(ids.to_tensor())


def real_ids(ids: tf.Tensor) -> tf.Tensor:
    """Turns ids as users give them into those that a model reads, inside a graph.

    Args:
        ids: int32 (batch, length), 0 at padding, wherever it stands.

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
    """Turns texts into ids inside a graph, after a look at whether none is too long.

    Args:
        tokenizer: Of the texts.
        texts: Strings (batch,).
        max_length: A text has fewer tokens than this: it leaves room for one more.
        what: What a text is called in an error, such as "source text".

    Returns:
        int32 (batch, None), ragged.

    Raises:
        InvalidArgumentError: A text is longer, when the graph runs.
    """
    return fitting(tokenizer.tokenize(texts), max_length, what)


def fitting(ids: tf.RaggedTensor, max_length: int, what: str) -> tf.RaggedTensor:
    """Gives ids back inside a graph, after a look at whether there are too many of a text.

    Args:
        ids: int32 (batch, None), ragged.
        max_length: A text has fewer tokens than this: it leaves room for one more.
        what: What a text is called in an error, such as "source text".

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
    """Log-probability of each label.

    Args:
        labels: int32 (batch, length), 0 at padding.
        logits: Floating, (batch, length, vocabulary).

    Returns:
        float32 (batch, length), 0 at padding.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(logits, tf.float32))
    return -tf.where(labels != 0, losses, 0.0)


def example_texts(tokenizer: Tokenizer, max_length: int) -> list[str]:
    """Makes a few texts of unequal lengths of a tokenizer's commonest tokens.

    Args:
        tokenizer: Of the texts.
        max_length: A text has fewer tokens than this.
    """
    special = {tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id}
    ids = range(max(special) + 1, tokenizer.vocabulary_size)
    if not ids:  # the last one is special
        ids = sorted(set(range(tokenizer.vocabulary_size)) - special)
    rows = [list(ids[: min(length, max_length - 1)]) for length in (5, 1, 9)]
    texts = tokenizer.detokenize(tf.ragged.constant(rows, tf.int32))
    # Tokens in an order that no text has may be read again as more of them.
    lengths = tokenizer.tokenize(texts).row_lengths().numpy()
    pairs = zip(texts.numpy(), lengths, strict=True)
    return [text.decode() for text, length in pairs if length < max_length] or [""]
