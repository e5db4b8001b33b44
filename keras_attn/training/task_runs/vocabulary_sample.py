"""Texts that a vocabulary is trained on."""

from collections.abc import Sequence

import numpy as np

from keras_attn.data.split import taken
from keras_attn.data.stored.texts import StoredTexts


def vocabulary_sample(columns: Sequence[Sequence[str]], most_bytes: int) -> list[str]:
    """Lists texts to train a vocabulary on: all of them, or a random sample.

    The texts of a sample come in random order until the next one would exceed the limit; they are
    listed in the order of the data.

    Args:
        columns: Columns of texts.
        most_bytes: Most bytes of their UTF-8.

    Returns:
        The texts of one column after the other; at least one if there is any.
    """
    sizes = [_sizes(column) for column in columns]
    both = np.concatenate(sizes)
    if both.sum() <= most_bytes:
        return [text for column in columns for text in column]
    order = np.random.default_rng(0).permutation(len(both))
    count = max(int(np.searchsorted(np.cumsum(both[order]), most_bytes, side="right")), 1)
    chosen = np.sort(order[:count])
    texts, first = [], 0
    for column, of_column in zip(columns, sizes, strict=True):
        rows = chosen[(chosen >= first) & (chosen < first + len(of_column))] - first
        texts += taken(column, rows)
        first += len(of_column)
    print(
        f"Vocabulary: trained on {count:,} of {len(both):,} texts, {most_bytes:,} bytes "
        "(data.vocabulary_bytes).",
        flush=True,
    )
    return texts


def _sizes(column: Sequence[str]) -> np.ndarray:
    """Bytes of each text, (texts,) int64."""
    if isinstance(column, StoredTexts):
        return column.sizes
    return np.fromiter((len(text.encode()) for text in column), np.int64, len(column))
