"""Texts with a tag for each word, from files to token ids for a classifier of tokens."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keras_attn.data.examples.base import IDS, Batch, Examples, kept_rows
from keras_attn.data.examples.labelled import label_numbers
from keras_attn.data.files import Pairs, read_pairs
from keras_attn.data.reading.lines import excerpt
from keras_attn.data.stored.cache import Cache
from keras_attn.data.stored.token_rows import FRAME, TokenRows, framed, require_room, word_rows
from keras_attn.tokenizers import Tokenizer, split_words
from keras_attn.validation import require


@dataclass(frozen=True, eq=False, kw_only=True)
class TaggedExamples(Examples):
    """Tokenized texts with a tag number for each word.

    A batch is `({"token_ids": (rows, length)}, labels (rows, length))`: each text as
    `[start] + text + [end]`, its words tokenized separately, and at the first token of each word
    the number of its tag, counted from 1; 0 everywhere else.

    Attributes:
        text: The texts between their start and end ids.
        tags: The labels, a row of equal length for each text.

    Examples:
        >>> pairs = Pairs(["bad cab"], ["ADJ NOUN"])
        >>> examples = TaggedExamples.from_pairs(
        ...     pairs, CharacterTokenizer("abcd"), labels=["ADJ", "NOUN"]
        ... )
        >>> inputs, labels = examples.assemble([0])
        >>> inputs["token_ids"]
        array([[1, 5, 4, 7, 6, 4, 5, 2]], dtype=int32)
        >>> labels
        array([[0, 1, 0, 0, 2, 0, 0, 0]], dtype=int32)

    Reference:
        Devlin et al., 2019, https://arxiv.org/abs/1810.04805, section 5.3.
    """

    text: TokenRows
    tags: TokenRows

    signature: ClassVar = ({"token_ids": IDS}, IDS)

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_length: int | None = None,
        other_tags: bool = False,
        long_texts: str = "cut",
    ) -> "TaggedExamples":
        """Tokenizes texts.

        Args:
            pairs: The texts as sources, their tags, with white space between them, as targets;
                words with the tag `pairs.untagged` have no label.
            tokenizer: Tokenizer of the texts.
            labels: All tags, in the order of their numbers.
            max_length: Longest sequence, its start and end ids included; `None` for no limit.
            other_tags: Whether other tags than `labels` are allowed; their words have no label.
            long_texts: Whether longer texts are truncated ("cut"), left out ("drop") or an "error".

        Returns:
            The texts that have a word; those that are left out or truncated are counted.

        Raises:
            UserError: `max_length` is not a positive integer, the numbers of words and tags of a
                text differ, a tag is not in `labels`, or no text is left.
        """
        numbers = label_numbers(
            _tags_of_words(pairs, cls.kind),
            labels,
            cls.kind,
            pairs.name,
            others=other_tags,
            untagged=pairs.untagged,
        )
        text, words = word_rows(pairs.sources, tokenizer)
        labelled = text.marked(words, numbers)
        keep, fields = kept_rows(
            text.lengths == 0,
            pairs.name,
            unit="word",
            long_texts=long_texts,
            max_length=(text.lengths + FRAME, max_length),
        )
        text, labelled = text.select(keep), labelled.select(keep)
        if max_length is not None:
            require_room(max_length)
            longest = max_length - FRAME
            text, labelled = text.truncated(longest), labelled.truncated(longest)
        labelled = labelled.with_first(0).with_last(0)
        return cls(text=framed(text, tokenizer), tags=labelled, **fields)

    def _batch(self, rows: np.ndarray, shape: tuple[int, ...]) -> Batch:
        return {"token_ids": self.text.padded(rows, shape)}, self.tags.padded(rows, shape)


def _tags_of_words(pairs: Pairs, kind: str) -> Iterator[list[str]]:
    """The tags of each text, one for each word."""
    for row, (text, of_text) in enumerate(zip(pairs.sources, pairs.targets, strict=True), 1):
        words, tags = split_words(text), split_words(of_text)
        require(
            len(words) == len(tags),
            f"{kind.capitalize()} {row:,} of {pairs.name} must have a tag for each word.",
            words=len(words),
            tags=len(tags),
        )
        yield tags


def read_tagged_texts(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
    cache: Cache | None = None,
) -> Pairs:
    r"""Reads texts and the tags of their words, under the rules of `read_pairs`.

    Args:
        paths: Tables with a column of texts and one of tags, words and tags separated by white
            space; files of CoNLL columns, a word a line; or a file of texts and one of tags whose
            lines correspond.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        columns: Column of `text` and of `tags`. Of CoNLL columns the first and the last are read,
            of CoNLL-U the form and the universal tag.
        encoding: Encoding of the files, UTF-8 by default.
        cache: Where the texts are kept in files; by default they are lists in memory.

    Returns:
        The texts as sources, their tags as targets, in the order of the files.

    Raises:
        UserError: See `read_pairs`; or the numbers of words and tags of a text differ.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("names.tsv").write_text("Anna lives in Rome\tB-PER O O B-LOC\n")
        >>> read_tagged_texts("names.tsv").targets
        ['B-PER O O B-LOC']
        >>> _ = Path("names.conll").write_text("Anna B-PER\nlives O\n\nRome B-LOC\n")
        >>> read_tagged_texts("names.conll").targets
        ['B-PER O', 'B-LOC']
    """
    roles = ("text", "tags")
    return read_pairs(paths, skip_bad_lines, wrong_tags, columns, encoding, roles, cache=cache)


def wrong_tags(text: str, tags: str) -> str | None:
    """What is wrong with the tags of a text, or `None`."""
    expected, found = len(split_words(text)), len(split_words(tags))
    if expected == found:
        return None
    return f"expected a tag for each of {expected} words, found {found} tags in {excerpt(tags)}"
