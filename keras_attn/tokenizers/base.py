"""Base class of tokenizers: special tokens, detokenization, saving."""

import abc
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.files import replaced_file, write_text
from keras_attn.tokenizers.lowercase import Lowercase
from keras_attn.tokenizers.special_text import SpecialTextSplitter
from keras_attn.validation import UserError, require, require_positive

CONFIG_FILE = "tokenizer.json"
FORMAT_VERSION = 1
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")
MASK = "[MASK]"
"""The token in place of one that is hidden."""


_DOTTED_I = 0x130  # the only capital whose lower case is two characters


class Tokenizer(tf.Module, abc.ABC):
    """Converts text to ids and back, using only ops of TensorFlow and tensorflow-text.

    Ids 0 to 3 are padding, start, end and unknown, except in the kinds that read the vocabulary
    files of BERT and GPT-2, which have other special ids. As a `tf.Module` it can be tracked by
    another module and saved in a SavedModel.

    Args:
        tokens: The vocabulary; ids are positions in it.
        lowercase: Whether text is lower-cased (see `Lowercase`) before anything else.
        special_tokens: Padding, start, end and unknown, at any place in the vocabulary; one token
            may serve several purposes. None if the vocabulary begins with `<pad>`, `<s>`, `</s>`
            and `<unk>`.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> isinstance(tokenizer, Tokenizer), tokenizer.vocabulary_size
        (True, 7)
    """

    kind: ClassVar[str]
    """Name of the class for `train_tokenizer` and `load_tokenizer`."""
    separator: ClassVar[str] = ""
    """Separator that `detokenize` writes between tokens."""

    pad_id: int = 0
    start_id: int = 1
    end_id: int = 2
    unknown_id: int = 3
    mask_id: int | None = None
    """Id of `[MASK]`, or `None` for a vocabulary without it."""
    mask_takes_spaces: bool = False
    """Whether spaces before a mask token in a text belong to it."""
    ends_between: int = 1
    """Number of end tokens between the texts of a pair."""

    _files: ClassVar[tuple[str, ...]] = ()
    """Names of the asset files."""
    _special_text: SpecialTextSplitter | None = None
    """Finds the tokens that are recognized in texts before `_tokenize` splits them."""

    def __init__(
        self,
        tokens: Sequence[str],
        lowercase: bool = False,
        special_tokens: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name=f"{self.kind}_tokenizer")
        if special_tokens is None:
            _check_first_tokens(tokens)
        _check_tokens(tokens)
        if special_tokens is not None:
            ids = _special_ids(tokens, special_tokens)
            self.pad_id, self.start_id, self.end_id, self.unknown_id = ids
        # An array, because tf.Module would wrap a list into one of its own.
        self._tokens = np.array(list(tokens), dtype=object)
        self.lowercase = bool(lowercase)
        self._lowercase = Lowercase() if self.lowercase else None
        self._token_of_id = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.range(len(tokens), dtype=tf.int32),
                tf.constant([token.encode() for token in tokens], tf.string),
            ),
            default_value=tokens[self.unknown_id],
        )

    @property
    def vocabulary(self) -> list[str]:
        """Every token, in the order of ids."""
        return list(self._tokens)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, special ones included."""
        return len(self._tokens)

    @property
    def is_special(self) -> np.ndarray:
        """True for ids of special tokens, boolean (vocabulary,)."""
        special = [self.pad_id, self.start_id, self.end_id, self.unknown_id]
        special += [] if self.mask_id is None else [self.mask_id]
        return np.isin(np.arange(self.vocabulary_size), special)

    @property
    def is_continued(self) -> np.ndarray:
        """True for ids of tokens that continue a word and say so, boolean (vocabulary,)."""
        return np.zeros(self.vocabulary_size, bool)

    @property
    def splits_at_spaces(self) -> bool:
        """Whether a text's ids are those of its words, the parts between spaces (U+0020)."""
        return False

    @property
    def digest(self) -> str:
        """A checksum of the kind, the configuration and the assets."""
        digest = hashlib.sha256(json.dumps([self.kind, self.get_config()]).encode())
        for name, data in sorted(self.assets().items()):
            digest.update(name.encode() + hashlib.sha256(data).digest())
        return digest.hexdigest()

    def tokens_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks tokens up inside a graph.

        Args:
            ids: int32, of any shape.

        Returns:
            Strings of that shape, the unknown token for ids outside the vocabulary.
        """
        return self._token_of_id.lookup(ids)

    def bytes_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up inside a graph what tokens spell, which may be a part of a character.

        Args:
            ids: int32, of any shape.

        Returns:
            Strings of that shape.
        """
        return self.tokens_of(ids)

    def id_to_token(self, token_id: int) -> str:
        """Returns the token of one id, the unknown token for an id outside the vocabulary."""
        inside = 0 <= token_id < self.vocabulary_size
        return self._tokens[token_id if inside else self.unknown_id]

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Converts strings to ids, without start and end.

        Args:
            strings: String tensor (batch,) of UTF-8. Malformed bytes are read as U+FFFD.

        Returns:
            RaggedTensor int32 (batch, None); an empty string is an empty row.

        Raises:
            UserError: `strings` is not of rank 1.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        require(
            strings.shape.rank in (None, 1),
            "`strings` must have the shape (batch,).",
            shape=tuple(strings.shape) if strings.shape.rank is not None else None,
        )
        strings = tf.ensure_shape(strings, [None])
        if self._special_text is None:
            return self._tokenize_lowered(strings)
        return self._special_text.tokenize(strings, self._tokenize_lowered)

    def detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        """Converts ids back to strings.

        Args:
            ids: Integer tensor (batch, length), or a RaggedTensor of that shape. Start and
                padding ids, and everything from the first end id on, are dropped; where start and
                end are the same id, it is a start at the first position. Ids outside the
                vocabulary are written as the unknown token (`<unk>`).

        Returns:
            String tensor (batch,).

        Raises:
            UserError: `ids` is not of rank 2.
        """
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(default_value=self.pad_id)
        ids = tf.convert_to_tensor(ids)
        require(
            ids.shape.rank in (None, 2),
            "`ids` must have the shape (batch, length).",
            shape=tuple(ids.shape) if ids.shape.rank is not None else None,
        )
        ids = tf.cast(tf.ensure_shape(ids, [None, None]), tf.int32)
        is_end = ids == self.end_id
        if self.start_id == self.end_id:
            is_end &= tf.range(tf.shape(ids)[1]) > 0
        ended = tf.cumsum(tf.cast(is_end, tf.int32), axis=1) > 0
        dropped = ended | (ids == self.pad_id) | (ids == self.start_id)
        return self._detokenize(tf.ragged.boolean_mask(ids, ~dropped))

    def tokenize_with_places(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Converts strings to ids, and finds the places of the tokens in the strings.

        Special tokens in a string, such as `[MASK]`, are split like other text.

        Args:
            strings: String tensor (batch,) of valid UTF-8.

        Returns:
            The ids, and where each token begins and ends, all int32 (batch, None), ragged. Places
            count the characters of the strings as they are given, before they are lower-cased and
            accents are removed.

        Raises:
            UserError: The tokenizer does not know the places of its tokens.
        """
        self.require_places()
        strings = tf.ensure_shape(tf.convert_to_tensor(strings, tf.string), [None])
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        places = tf.ragged.range(codes.row_lengths()).values
        if self._lowercase:
            strings = self._lowercase(strings)
            places = tf.repeat(places, tf.where(codes.values == _DOTTED_I, 2, 1))
        return self._tokenize_placed(strings, tf.cast(places, tf.int32))

    def _tokenize_placed(
        self, strings: tf.Tensor, places: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`tokenize_with_places` of strings, with the place of each of their code points."""
        raise NotImplementedError

    def require_places(self) -> None:
        """Raises a `UserError` unless the tokenizer knows the places of its tokens in a text."""
        require(
            type(self)._tokenize_placed is not Tokenizer._tokenize_placed,
            "This task needs a tokenizer that knows the places of its tokens in a text: "
            "word_piece, sentencepiece, byte_level_bpe or characters.",
            tokenizer=self.kind,
        )

    def _tokenize_lowered(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenize(self._lowercase(strings) if self._lowercase else strings)

    @abc.abstractmethod
    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`tokenize` for strings (batch,) that are lower-cased where asked, and not special."""

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`detokenize` for int32 ids (batch, None) without padding, start and end."""
        tokens = ids.with_values(self.tokens_of(ids.values))
        return tf.strings.reduce_join(tokens, axis=-1, separator=self.separator)

    def _recognize_mask(self) -> None:
        """Makes `[MASK]`, the last token, a special token that is recognized in texts."""
        self.mask_id = self.vocabulary_size - 1
        self._special_text = SpecialTextSplitter({MASK: self.mask_id})

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `from_config` other than the assets, as JSON values."""

    def assets(self) -> dict[str, bytes]:
        """Returns the contents of the tokenizer's asset files, by file name."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any], assets: dict[str, bytes]) -> "Tokenizer":
        """Makes a tokenizer from the `get_config()` and `assets()` of another one."""
        for name in cls._files:
            require(name in assets, f"`{name}` must be among the assets.", assets=[*assets])
        return cls(*cls._read_assets(assets), **config)

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        """The first arguments of the constructor, from the asset files."""
        return ()

    def save(self, folder: str | Path) -> None:
        """Writes `tokenizer.json`, and asset files where the kind has any, into `folder`.

        A missing folder is created. Each file is written under a temporary name and then renamed,
        `tokenizer.json` last, so that an interrupted save never leaves half a file.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        assets = self.assets()
        description = {
            "kind": self.kind,
            "format_version": FORMAT_VERSION,
            "config": self.get_config(),
            "assets": {name: hashlib.sha256(data).hexdigest() for name, data in assets.items()},
        }
        for name, data in assets.items():
            with replaced_file(folder / name) as temporary:
                temporary.write_bytes(data)
        text = json.dumps(description, ensure_ascii=False, indent=1) + "\n"
        write_text(folder / CONFIG_FILE, text)


def read_texts(texts: Iterable[str], lowercase: bool = False) -> Iterator[str]:
    """Checks training texts and yields them, lowercased if the tokenizer does so.

    Args:
        texts: Any number of strings; read once.
        lowercase: Whether to lower-case them.

    Yields:
        The texts, in order.

    Raises:
        UserError: `texts` is a string, or an item is not valid text.
    """
    if isinstance(texts, str | bytes):
        raise UserError(
            "`texts` must be a collection of strings, not one string. "
            f"Received: texts={texts[:40]!r}."
        )
    lower = Lowercase() if lowercase else None
    numbered = enumerate(texts)
    while block := list(islice(numbered, 1024)):
        for position, text in block:
            require(_is_text(text), f"`texts[{position}]` must be Unicode text.", text=text)
        if lower is None:
            yield from (text for _, text in block)
        else:
            strings = tf.constant([text.encode() for _, text in block], tf.string)
            yield from (string.decode() for string in lower(strings).numpy())


def frequent(counts: Counter[str], min_count: int, what: str) -> list[str]:
    """Lists what occurs often enough in texts, sorted by falling count, then by code points.

    Args:
        counts: Number of occurrences.
        min_count: Smallest number that is enough.
        what: Name of an item in error messages, such as "character".

    Raises:
        UserError: Nothing occurs often enough.
    """
    require_positive(min_count=min_count)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    found = [item for item, count in ordered if count >= min_count]
    require(
        bool(found),
        f"`texts` must contain a {what} that occurs at least `min_count` times.",
        **{"min_count": min_count, f"distinct_{what}s": len(counts)},
    )
    return found


def spelled_places(
    ids: tf.RaggedTensor, lengths: tf.Tensor, places: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Finds the places of tokens that spell a text, one after the other.

    Args:
        ids: Of the tokens, (batch, None), ragged.
        lengths: Number of units that each token spells, at least 1, (tokens,).
        places: The place of each unit, (units,).

    Returns:
        The ids, and where each token begins and ends, (batch, None), ragged.

    Raises:
        InvalidArgumentError: The tokens do not spell all units, when the graph runs.
    """
    lengths = tf.cast(lengths, tf.int32)
    ends = tf.cumsum(lengths)
    spelled, units = tf.reduce_sum(lengths), tf.size(places)
    message = ["The tokens of a text must spell it. Received units and spelled ones:"]
    asserted = tf.debugging.Assert(spelled == units, [*message, units, spelled])
    with tf.control_dependencies([] if asserted is None else [asserted]):
        places = tf.identity(places)
    begins = tf.gather(places, ends - lengths)
    return ids, ids.with_values(begins), ids.with_values(tf.gather(places, ends - 1) + 1)


def ids_after_special_tokens(keys: tf.Tensor, unknown_id: int) -> tf.lookup.StaticHashTable:
    """Makes a table from keys to ids that follow those of the special tokens.

    Args:
        keys: The keys in the order of their ids.
        unknown_id: The id of anything else.
    """
    first = len(SPECIAL_TOKENS)
    ids = tf.range(first, first + len(keys), dtype=tf.int32)
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, ids), default_value=unknown_id
    )


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True


def _check_first_tokens(tokens: Sequence[str]) -> None:
    first = len(SPECIAL_TOKENS)
    require(
        tuple(tokens[:first]) == SPECIAL_TOKENS,
        f"The vocabulary must begin with the special tokens {', '.join(SPECIAL_TOKENS)}.",
        first=list(tokens[:first]),
    )
    for token in tokens[first:]:
        special = token in SPECIAL_TOKENS
        require(not special, "The vocabulary must not repeat a special token.", token=token)


def _check_tokens(tokens: Sequence[str]) -> None:
    seen = set()
    for position, token in enumerate(tokens):
        require(_is_text(token), f"Token {position} must be Unicode text.", token=token)
        require(token not in seen, "The vocabulary must not contain a token twice.", token=token)
        seen.add(token)


def _special_ids(tokens: Sequence[str], special_tokens: Sequence[str]) -> list[int]:
    require(
        len(special_tokens) == len(SPECIAL_TOKENS),
        "`special_tokens` must be four tokens: padding, start, end and unknown.",
        special_tokens=special_tokens,
    )
    ids = {token: position for position, token in enumerate(tokens)}
    for token in special_tokens:
        require(token in ids, f"The vocabulary must contain the special token {token}.")
    return [ids[token] for token in special_tokens]
