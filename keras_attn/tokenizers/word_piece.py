"""WordPiece, the tokenizer of BERT."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from keras_attn.reading import read_text
from keras_attn.tokenizers.base import MASK, Tokenizer, read_texts, spelled_places
from keras_attn.tokenizers.bert_words import BertWords
from keras_attn.tokenizers.special_text import SpecialTextSplitter
from keras_attn.tokenizers.training_library import training_library
from keras_attn.tokenizers.vocabulary_files import word_piece_tokens
from keras_attn.validation import UserError, require, require_positive

VOCABULARY_FILE = "vocab.txt"
PAD, UNKNOWN, START, END = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SPECIAL = (PAD, UNKNOWN, START, END, MASK)
CONTINUED = "##"
_MOST_CHARACTERS = 100
_LONGEST_TOKEN = 256  # of FastWordpieceTokenizer
_MOST_BYTES = 4 * _MOST_CHARACTERS


class WordPieceTokenizer(Tokenizer):
    """Splits text into BERT's words, and these into the longest pieces of a vocabulary.

    Ids are those of `transformers.BertTokenizer`, the "fast" tokenizer; start is `[CLS]`, end
    `[SEP]`. One thing differs: where accents are stripped, marks of musical notes and Hangul tones
    that follow each other keep their order, which decomposition would change. The "slow" tokenizer
    (`BertTokenizerLegacy`) differs: it writes a capital sigma at the end of a word as ς, composes
    accents that are kept, drops code points that its Python does not know, has newer lists of
    marks and punctuation, and treats U+2B820 to U+2B91F as Chinese characters.

    A word of more than 100 characters, or with a part that no piece spells, is unknown.
    `detokenize` puts one space between words, also before punctuation, and drops a `##` at the
    beginning of a text.

    Args:
        tokens: The vocabulary, with `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` anywhere in it;
            pieces that continue a word begin with `##`.
        lowercase: Whether words are lower-cased: True for BERT's "uncased" vocabularies.
        strip_accents: Whether accents are removed; None for the value of `lowercase`.
        split_chinese: Whether each Chinese character is a word.
        split_special_tokens: Whether special tokens in a text, such as `[MASK]`, are split like
            other text. Use True for untrusted texts.

    Raises:
        UserError: A token is missing, appears twice or is not text.

    Reference: Devlin et al. 2019, "BERT", https://arxiv.org/abs/1810.04805; Song et al. 2021,
    "Fast WordPiece Tokenization", https://arxiv.org/abs/2012.15524.

    Examples:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
        >>> tokenizer = WordPieceTokenizer(tokens, lowercase=True)
        >>> tokenizer.tokenize(["The cats"]).to_list()
        [[5, 6, 7]]
    """

    kind = "word_piece"
    _files = (VOCABULARY_FILE,)
    separator = " "

    def __init__(
        self,
        tokens: Sequence[str],
        lowercase: bool = False,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        split_special_tokens: bool = False,
    ) -> None:
        super().__init__(tokens, special_tokens=(PAD, START, END, UNKNOWN))
        require(MASK in tokens, f"The vocabulary must contain the special token {MASK}.")
        for token in tokens:
            size = len(token.removeprefix(CONTINUED).encode("utf-8", "replace"))
            require(
                size <= _LONGEST_TOKEN,
                f"A token has at most {_LONGEST_TOKEN} bytes.",
                token=token[:50],
                bytes=size,
            )
        self.lowercase = bool(lowercase)  # by `BertWords`, not by the base class
        self.mask_id = list(tokens).index(MASK)
        self.strip_accents = strip_accents
        self.split_chinese = bool(split_chinese)
        self.split_special_tokens = bool(split_special_tokens)
        self._words = _bert_words(lowercase, strip_accents, split_chinese)
        if not split_special_tokens:
            ids = {token: position for position, token in enumerate(tokens) if token in SPECIAL}
            self._special_text = SpecialTextSplitter(ids)
        self._pieces = tf_text.FastWordpieceTokenizer(
            list(tokens),
            max_bytes_per_word=_MOST_BYTES,
            token_out_type=tf.int32,
            unknown_token=UNKNOWN,
            no_pretokenization=True,
        )

    @property
    def is_special(self) -> np.ndarray:
        """True for ids of special tokens, boolean (vocabulary,)."""
        return np.isin(self._tokens, SPECIAL)

    @property
    def is_continued(self) -> np.ndarray:
        """True for ids of pieces that continue a word, boolean (vocabulary,)."""
        return np.array([token.startswith(CONTINUED) for token in self._tokens])

    @classmethod
    def from_file(cls, path: str | Path, **options: Any) -> "WordPieceTokenizer":
        """Reads a `vocab.txt`, which has one token a line.

        Args:
            path: The file.
            **options: Further arguments of the class.

        Returns:
            The tokenizer.

        Raises:
            UserError: The file is missing or no vocabulary; the message names it.
        """
        tokens = word_piece_tokens(read_text(path))
        try:
            return cls(tokens, **options)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int = 8000,
        lowercase: bool = False,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        split_special_tokens: bool = False,
        min_count: int = 2,
    ) -> "WordPieceTokenizer":
        """Trains a vocabulary, special tokens first; the same texts always give the same one.

        Needs the `tokenizers` library, an extra of this package.

        Args:
            texts: Strings to train on.
            vocabulary_size: Largest number of ids, special tokens included.
            lowercase: See the class.
            strip_accents: See the class.
            split_chinese: See the class.
            split_special_tokens: See the class.
            min_count: How often two neighboring pieces must occur to become one.

        Returns:
            The tokenizer.

        Raises:
            UserError: An option is wrong, the texts are blank, the library is missing, or
                `vocabulary_size` is too small for their characters (the message says what is
                needed).
        """
        require_positive(vocabulary_size=vocabulary_size, min_count=min_count)
        words = _bert_words(lowercase, strip_accents, split_chinese)
        lines = [" ".join(line) for line in _words_of_lines(words, read_texts(texts)) if line]
        require(bool(lines), "`texts` must contain a text that is not blank.", not_blank=0)
        first = [*SPECIAL, *_characters(lines)]
        require(
            vocabulary_size >= len(first),
            f"`vocabulary_size` must be at least {len(first)} for these texts.",
            vocabulary_size=vocabulary_size,
        )
        library = training_library()
        model = library.Tokenizer(library.models.WordPiece(unk_token=UNKNOWN))
        model.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
        # Given as special tokens, the characters have the same ids in every process.
        trainer = library.trainers.WordPieceTrainer(
            vocab_size=vocabulary_size,
            min_frequency=min_count,
            special_tokens=first,
            show_progress=False,
        )
        model.train_from_iterator(lines, trainer)
        ids = model.get_vocab()
        tokens = sorted(ids, key=ids.__getitem__)
        return cls(tokens, lowercase, strip_accents, split_chinese, split_special_tokens)

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self._pieces_of(self._words(strings)).merge_dims(1, 2)

    def _tokenize_placed(self, strings, places):
        words, places = self._words.with_places(strings, places)
        pieces = self._pieces_of(words)  # (batch, words, None)
        ids = pieces.merge_dims(1, 2)
        tokens = tf.strings.regex_replace(self.tokens_of(ids.values), f"^{CONTINUED}(.)", r"\1")
        lengths = tf.strings.length(tokens, unit="UTF8_CHAR")
        of_words = tf.strings.length(words.values, unit="UTF8_CHAR")
        whole = tf.gather(of_words, pieces.values.value_rowids())
        # A word that is unknown is one token.
        lengths = tf.where(ids.values == self.unknown_id, whole, lengths)
        return spelled_places(ids, lengths, places)

    def _pieces_of(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The pieces of words (batch, words), int32 (batch, words, None)."""
        too_long = tf.strings.length(words.values, unit="UTF8_CHAR") > _MOST_CHARACTERS
        # The op counts bytes; so many are unknown to it.
        values = tf.where(too_long, "-" * (_MOST_BYTES + 1), words.values)
        return words.with_values(self._pieces.tokenize(values))

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.regex_replace(super()._detokenize(ids), f"(^| ){CONTINUED}", "")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__` but the vocabulary, which is an asset."""
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_chinese": self.split_chinese,
            "split_special_tokens": self.split_special_tokens,
        }

    def assets(self) -> dict[str, bytes]:
        """Returns the vocabulary as `vocab.txt`."""
        return {VOCABULARY_FILE: "".join(f"{token}\n" for token in self._tokens).encode()}

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        return (word_piece_tokens(assets[VOCABULARY_FILE].decode()),)


def _bert_words(lowercase: bool, strip_accents: bool | None, split_chinese: bool) -> BertWords:
    strip = lowercase if strip_accents is None else strip_accents
    return BertWords(bool(lowercase), bool(strip), bool(split_chinese))


def _words_of_lines(words: BertWords, texts: Iterable[str]) -> Iterable[list[str]]:
    for strings in tf.data.Dataset.from_tensor_slices(list(texts) or [""]).batch(1024):
        for line in words(strings).to_list():
            yield [word.decode() for word in line]


def _characters(lines: Iterable[str]) -> list[str]:
    """The pieces of one character, first all as they begin a word, then as they go on with one."""
    words = {word for line in lines for word in line.split(" ")}
    begins = {character for word in words for character in word}
    continues = {character for word in words for character in word[1:]}
    return [*sorted(begins), *(CONTINUED + character for character in sorted(continues))]
