"""Texts with a tag for each of their words."""

import os
from collections.abc import Sequence

from keras_attn.data.files import Pairs, excerpt, read_pairs
from keras_attn.tokenizers import split_words


def read_tagged_texts(
    paths: Sequence[str | os.PathLike] | str | os.PathLike, skip_bad_lines: bool = False
) -> Pairs:
    """Reads texts and the tags of their words, under the rules of `read_pairs`.

    Args:
        paths: One path of a file of lines `text<TAB>tags`, or the two paths of a file of texts and
            one of tags whose lines correspond. Words and tags are separated by white space.
        skip_bad_lines: Whether malformed lines are left out and counted instead of raising.

    Returns:
        The texts as sources, their tags as targets, in the order of the files.

    Raises:
        UserError: See `read_pairs`; or the numbers of words and tags of a text differ.
    """
    return read_pairs(paths, skip_bad_lines, _mistake)


def _mistake(text: str, tags: str) -> str | None:
    expected, found = len(split_words(text)), len(split_words(tags))
    if expected == found:
        return None
    return f"expected a tag for each of {expected} words, found {found} tags in {excerpt(tags)}"
