"""GPT-2's byte-level BPE."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_attn.documents import parse_json
from keras_attn.reading import read_text
from keras_attn.tokenizers.base import MASK, SPECIAL_TOKENS, Tokenizer, read_texts, spelled_places
from keras_attn.tokenizers.byte_words import ByteWords, byte_characters
from keras_attn.tokenizers.merges import check_merges, merge_model
from keras_attn.tokenizers.sentencepiece_model import SentencePieceModel
from keras_attn.tokenizers.special_text import SpecialTextSplitter
from keras_attn.tokenizers.training_library import training_library
from keras_attn.tokenizers.vocabulary_files import bpe_merges, bpe_vocabulary
from keras_attn.validation import UserError, require, require_positive

VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"
END_OF_TEXT = "<|endoftext|>"


class ByteLevelBpeTokenizer(Tokenizer):
    """Splits text into GPT-2's words, and merges their bytes to the tokens of a vocabulary.

    Ids are those of `transformers.GPT2Tokenizer` for every text. No text is unknown:
    `detokenize(tokenize(text))` is `text` for all valid UTF-8 that contains no special token.
    Bytes that form no character, such as a part of one, are written as U+FFFD.

    SentencePiece's op does the merging, with a model made of the merges. It merges two neighbors
    if they spell a token, not if the pair is listed. For merges that training makes, both give the
    same result; others are refused.

    Args:
        tokens: The vocabulary by id, with one character per byte (`Ġthe`).
        merges: Pairs of tokens that become one, the earliest first.
        special_tokens: Padding, start, end and unknown; one token may serve several purposes. GPT-2
            only has `<|endoftext|>`, which is then also the padding.
        lowercase: Whether text is lower-cased first.
        split_special_tokens: Whether special tokens in a text are split like other text. Use True
            for untrusted texts.
        with_mask: Whether the last token, `[MASK]`, is a special token too.

    Raises:
        UserError: A byte, a special token, or a part or the result of a merge is not in the
            vocabulary; a token or a merge appears twice; or a token is not what the merges make
            of its bytes.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners",
    section 2.2; Sennrich et al. 2016, https://arxiv.org/abs/1508.07909, algorithm 1.

    Examples:
        >>> texts = ["the cat sat", "the dog ran"] * 20
        >>> tokenizer = train_tokenizer("byte_level_bpe", texts, vocabulary_size=270)
        >>> ids = tokenizer.tokenize(["the cat"])
        >>> tokenizer.detokenize(ids).numpy()[0].decode()
        'the cat'
    """

    kind = "byte_level_bpe"
    _files = (VOCABULARY_FILE, MERGES_FILE)

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Sequence[tuple[str, str]],
        special_tokens: Sequence[str] = (END_OF_TEXT,) * len(SPECIAL_TOKENS),
        lowercase: bool = False,
        split_special_tokens: bool = False,
        with_mask: bool = False,
    ) -> None:
        super().__init__(tokens, lowercase, special_tokens)
        check_merges(tokens, merges, byte_characters())
        # Tuples, because tf.Module would wrap lists.
        self.special_tokens = tuple(special_tokens)
        self.merges = tuple((first, second) for first, second in merges)
        self.split_special_tokens = bool(split_special_tokens)
        self.with_mask = bool(with_mask)
        if with_mask:
            require(tokens[-1] == MASK, f"The last token must be {MASK}.", last=tokens[-1])
            self.mask_id = len(tokens) - 1
        # Texts may not contain the padding.
        if not split_special_tokens:
            recognized = [*special_tokens[1:], *([MASK] if with_mask else [])]
            ids = {token: list(tokens).index(token) for token in recognized}
            self._special_text = SpecialTextSplitter(ids)
        self._words = ByteWords()
        self._model = SentencePieceModel(merge_model(tokens, self.merges, byte_characters()))
        self._bytes_of_id = tf.constant(_bytes_of_tokens(tokens, set(special_tokens)), tf.string)

    @classmethod
    def from_files(
        cls, vocabulary: str | Path, merges: str | Path, **options: Any
    ) -> "ByteLevelBpeTokenizer":
        """Reads a `vocab.json` and a `merges.txt`.

        Args:
            vocabulary: The file of tokens and their ids.
            merges: The file of merges.
            **options: Further arguments of the class.

        Returns:
            The tokenizer.

        Raises:
            UserError: A file is missing or malformed, or the two do not fit; the message names it.
        """
        tokens = bpe_vocabulary(read_text(vocabulary), str(vocabulary))
        pairs = bpe_merges(read_text(merges), str(merges))
        try:
            return cls(tokens, pairs, **options)
        except UserError as error:
            raise UserError(f"{vocabulary}, {merges}: {error}") from None

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int = 8000,
        special_tokens: Sequence[str] = SPECIAL_TOKENS,
        lowercase: bool = False,
        split_special_tokens: bool = False,
        min_count: int = 2,
        with_mask: bool = False,
    ) -> "ByteLevelBpeTokenizer":
        """Trains a vocabulary, special tokens first; the same texts always give the same one.

        Needs the `tokenizers` library, an extra of this package.

        Args:
            texts: Strings to train on.
            vocabulary_size: Largest number of ids: special tokens, 256 bytes and merges, and
                `[MASK]`.
            special_tokens: See the class; by default those of the other kinds, as ids 0 to 3.
            lowercase: Whether text is lower-cased, now and in `tokenize`.
            split_special_tokens: See the class.
            min_count: How often two neighbors must occur to be merged.
            with_mask: Whether `[MASK]`, a special token, is added at the end.

        Returns:
            The tokenizer.

        Raises:
            UserError: An option is wrong, the texts are empty, the library is missing, or
                `vocabulary_size` is too small for the bytes.
        """
        require_positive(vocabulary_size=vocabulary_size, min_count=min_count)
        special = list(dict.fromkeys(special_tokens))
        smallest = len(special) + len(byte_characters()) + with_mask
        require(
            vocabulary_size >= smallest,
            f"`vocabulary_size` must be at least {smallest}.",
            vocabulary_size=vocabulary_size,
        )
        lines = [text for text in read_texts(texts, lowercase) if text]
        require(bool(lines), "`texts` must contain a text that is not empty.", not_empty=0)
        library = training_library()
        model = library.Tokenizer(library.models.BPE())
        model.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary_size - with_mask,
            min_frequency=min_count,
            special_tokens=special,
            initial_alphabet=byte_characters(),
            show_progress=False,
        )
        model.train_from_iterator(lines, trainer)
        trained = parse_json(model.to_str(), "tokenizers")["model"]
        tokens = sorted(trained["vocab"], key=trained["vocab"].__getitem__)
        merges = [tuple(pair) for pair in trained["merges"]]
        tokens += [MASK] if with_mask else []
        return cls(tokens, merges, special_tokens, lowercase, split_special_tokens, with_mask)

    def bytes_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up inside a graph what tokens spell (see `Tokenizer.bytes_of`)."""
        known = (ids >= 0) & (ids < self.vocabulary_size)
        return tf.gather(self._bytes_of_id, tf.where(known, ids, self.unknown_id))

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        words = self._words(strings)
        distinct, which = tf.unique(words.values)
        ids = tf.gather(self._model.encode(distinct), which)
        return words.with_values(ids).merge_dims(1, 2)

    def _tokenize_placed(self, strings, places):
        ids = self._tokenize(strings)
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace").values
        characters = tf.strings.unicode_encode(tf.expand_dims(codes, 1), "UTF-8")
        of_bytes = tf.repeat(places, tf.strings.length(characters))
        return spelled_places(ids, tf.strings.length(self.bytes_of(ids.values)), of_bytes)

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        strings = tf.strings.reduce_join(ids.with_values(self.bytes_of(ids.values)), axis=-1)
        return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__` but the vocabulary and merges, which are assets."""
        config = {
            "special_tokens": list(self.special_tokens),
            "lowercase": self.lowercase,
            "split_special_tokens": self.split_special_tokens,
        }
        return config | ({"with_mask": True} if self.with_mask else {})

    def assets(self) -> dict[str, bytes]:
        """Returns the vocabulary as `vocab.json` and the merges as `merges.txt`."""
        ids = {token: position for position, token in enumerate(self._tokens)}
        lines = ["#version: 0.2", *(" ".join(pair) for pair in self.merges)]
        return {
            VOCABULARY_FILE: json.dumps(ids, ensure_ascii=False).encode(),
            MERGES_FILE: "".join(f"{line}\n" for line in lines).encode(),
        }

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        tokens = bpe_vocabulary(assets[VOCABULARY_FILE].decode(), VOCABULARY_FILE)
        return tokens, bpe_merges(assets[MERGES_FILE].decode(), MERGES_FILE)


def _bytes_of_tokens(tokens: Iterable[str], special_tokens: set[str]) -> list[bytes]:
    byte = {character: position for position, character in enumerate(byte_characters())}
    return [
        bytes(byte[character] for character in token)
        if token not in special_tokens and set(token) <= byte.keys()
        else token.encode()
        for token in tokens
    ]
