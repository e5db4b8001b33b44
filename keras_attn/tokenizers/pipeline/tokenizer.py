"""Tokenizer of a `tokenizer.json`, the file of the `tokenizers` library."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.documents import parse_json
from keras_attn.tokenizers.base import Tokenizer
from keras_attn.tokenizers.byte_words import byte_characters
from keras_attn.tokenizers.code_points import code_points
from keras_attn.tokenizers.pipeline.added_tokens import AddedToken, AddedTokenSplitter
from keras_attn.tokenizers.pipeline.normalizers import Normalizer, make_normalizer
from keras_attn.tokenizers.pipeline.places import PlaceFinder
from keras_attn.tokenizers.pipeline.pre_tokenizers import make_pre_tokenizer
from keras_attn.tokenizers.pipeline.subword_models import make_model, model_tokens
from keras_attn.tokenizers.pipeline.text_frame import read_frame
from keras_attn.tokenizers.pipeline.unigrams import Unigrams
from keras_attn.tokenizers.pipeline.words import Words
from keras_attn.validation import is_integer, require

DEFINITION_FILE = "pipeline.json"
_SPACE = "▁"
_UNUSED = "[unused id {}]"


class PipelineTokenizer(Tokenizer):
    """Splits text as a `tokenizer.json` describes: normalized, into words, into tokens.

    Ids are those of the `tokenizers` library, except that padding is moved to 0, which makes
    greater by one the ids that were less than that of padding. One thing differs: where `Metaspace`
    is only to be before the first word (`prepend_scheme` "first"), it is also before the first one
    of a text whose beginning the normalizer drops.

    Args:
        definition: The content of the file. Used are `normalizer`, `pre_tokenizer`, `model` and
            `added_tokens`.
        special_tokens: Padding, start, end and unknown; one token may serve several purposes.
            Padding may be missing in the file: all ids are then greater by one.
        mask_token: The token in place of one that is hidden.
        split_special_tokens: Whether special tokens in a text are split like other text. Use True
            for untrusted texts.

    Raises:
        UserError: A part of the definition is malformed or not supported, or a token is missing.

    Examples:
        >>> definition = {
        ...     "pre_tokenizer": {"type": "WhitespaceSplit"},
        ...     "model": {"type": "WordPiece", "vocab": {"<pad>": 0, "[UNK]": 1, "a": 2, "##b": 3}},
        ... }
        >>> tokenizer = PipelineTokenizer(definition, ["<pad>", "[UNK]", "[UNK]", "[UNK]"])
        >>> tokenizer.tokenize(["ab a", "c"]).to_list()
        [[2, 3, 2], [1]]
    """

    kind = "pipeline"
    _files = (DEFINITION_FILE,)

    def __init__(
        self,
        definition: Mapping[str, Any],
        special_tokens: Sequence[str],
        mask_token: str | None = None,
        split_special_tokens: bool = False,
    ) -> None:
        model: Any = definition.get("model")
        added = read_added_tokens(definition.get("added_tokens"))
        tokens = file_tokens(definition)
        padding = special_tokens[0]
        self._padding_id = tokens.index(padding) if padding in tokens else len(tokens)
        super().__init__(
            [padding, *(token for token in tokens if token != padding)],
            special_tokens=special_tokens,
        )
        ids = {token: number for number, token in enumerate(self._tokens)}
        if mask_token is not None:
            require(mask_token in ids, f"The vocabulary must contain the token {mask_token}.")
            self.mask_id = ids[mask_token]
            self.mask_takes_spaces = any(x.lstrip for x in added if x.content == mask_token)
        self.special_tokens = tuple(special_tokens)
        self.mask_token = mask_token
        self.split_special_tokens = bool(split_special_tokens)
        self._definition = json.dumps(definition, ensure_ascii=False).encode()
        self._special = np.isin(self._tokens, [one.content for one in added if one.special])
        self._continued_prefix = (
            model.get("continuing_subword_prefix") if isinstance(model, Mapping) else None
        )
        self._normalize = make_normalizer(definition.get("normalizer"))
        self._split = make_pre_tokenizer(definition.get("pre_tokenizer"))
        self._model = make_model(model, ids)
        words = json.dumps(definition.get("pre_tokenizer"))
        self._is_byte_level = '"ByteLevel"' in words
        require(
            isinstance(model, Mapping) and (model.get("type") != "BPE" or self._is_byte_level),
            "`model`: BPE is only supported with the pre-tokenizer ByteLevel.",
        )
        found = [one for one in added if not (split_special_tokens and one.special)]
        self._added = _splitter([one for one in found if not one.normalized], ids, tf.identity)
        self._added_normalized = _splitter(
            [one for one in found if one.normalized], ids, self._normalize
        )
        texts = [one for one in added if not one.special]
        self._added_texts = _splitter([x for x in texts if not x.normalized], ids, tf.identity)
        self._added_texts_normalized = _splitter(
            [x for x in texts if x.normalized], ids, self._normalize
        )
        contents = {one.content for one in added}
        spelled = list(self._tokens)
        is_unigram = isinstance(self._model, Unigrams)
        if is_unigram:
            spelled = [x if x in contents else x.replace(_SPACE, " ") for x in spelled]
        content = _bytes_of_tokens(spelled, contents, self._is_byte_level)
        self._bytes_of_id = tf.constant(content, tf.string)
        if self._continued_prefix:
            prefix = self._continued_prefix.encode()
            content = [x if x == prefix else x.removeprefix(prefix) for x in content]
        self._find_places = PlaceFinder(
            self._normalize, self._is_byte_level, self._spaces(_SPACE * is_unigram)
        )
        self._units_of_id = tf.constant(self._find_places.units_of(content), tf.int32)

    @property
    def definition(self) -> dict[str, Any]:
        """The content of the file."""
        return parse_json(self._definition.decode(), DEFINITION_FILE)

    @property
    def padding_id(self) -> int:
        """The file's id of padding, or where it has none the number of tokens."""
        return self._padding_id

    @property
    def ends_between(self) -> int:  # type: ignore[override]
        """Number of end tokens between the texts of a pair, as the file's `post_processor` says."""
        frame = read_frame(Path(DEFINITION_FILE), self.definition.get("post_processor"))
        return max(1, frame.ends_between if frame else 1)

    @property
    def is_special(self) -> np.ndarray:
        """True for ids of special tokens, boolean (vocabulary,)."""
        return super().is_special | self._special

    @property
    def is_continued(self) -> np.ndarray:
        """True for ids of pieces that continue a word and say so, boolean (vocabulary,)."""
        prefix = self._continued_prefix
        return np.array([bool(prefix) and token.startswith(prefix) for token in self._tokens])

    def bytes_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up inside a graph what tokens spell (see `Tokenizer.bytes_of`)."""
        known = (ids >= 0) & (ids < self.vocabulary_size)
        return tf.gather(self._bytes_of_id, tf.where(known, ids, self.unknown_id))

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        strings = tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", errors="replace")
        at_start = tf.ones_like(strings, tf.bool)
        return _around(self._added, self._ids_of_parts, strings, at_start)

    def _ids_of_parts(self, strings: tf.Tensor, at_start: tf.Tensor) -> tf.RaggedTensor:
        """The ids of parts of texts, (parts, None), some at the start of their texts."""
        strings = self._normalize(strings)
        return _around(self._added_normalized, self._ids_of_texts, strings, at_start)

    def _ids_of_texts(self, strings: tf.Tensor, at_start: tf.Tensor) -> tf.RaggedTensor:
        """`_ids_of_parts` for what is normalized and contains no added token."""
        words, which, rows = self._split_words(strings, at_start)
        ids = tf.gather(self._model(words), which)
        return _by_row(ids, rows, tf.size(strings, tf.int64))

    def _split_words(self, strings: tf.Tensor, at_start: tf.Tensor) -> tuple:
        """The words of texts, each once; which of them are where, and in which text."""
        words = Words(strings, tf.range(tf.size(strings, tf.int64)), at_start)
        words = self._split(words.where(tf.strings.length(strings) > 0))
        distinct, which = tf.unique(words.strings)
        return distinct, which, words.rows

    def require_places(self) -> None:
        """Raises a `UserError` unless the places of tokens in a text can be found."""
        definition = self.definition
        listed = [definition.get("normalizer"), definition.get("pre_tokenizer")]
        parts = json.dumps(listed, ensure_ascii=False).replace(
            f'"Prepend", "prepend": "{_SPACE}"', ""
        )
        for part in ("Removed", "CharDelimiterSplit", "Prepend"):
            require(
                f'"{part}"' not in parts,
                "This task needs the places of tokens in a text, which are lost with this part of "
                "`tokenizer.json`.",
                part=part,
            )

    def _tokenize_placed(self, strings, places):
        at_start = tf.ones_like(strings, tf.bool)
        coded = _around(self._added_texts, self._coded_parts, strings, at_start, self._coded)
        ids, units = (
            coded.with_values(tf.cast(x, tf.int32))
            for x in (coded.values % self.vocabulary_size, coded.values // self.vocabulary_size)
        )
        begins, ends = self._find_places(strings, places, units)
        return ids, ids.with_values(begins), ids.with_values(ends)

    def _spaces(self, metaspace: str) -> str:
        """The characters that no token spells, but beside others."""
        if self._is_byte_level:
            return "\t\n\v\f\r "
        splitting = ('"WhitespaceSplit"', '"BertPreTokenizer"', '"Whitespace"')
        words = json.dumps(self.definition.get("pre_tokenizer"))
        if not any(part in words for part in splitting):
            return " " + metaspace
        return metaspace + "".join(map(chr, np.flatnonzero(code_points("spaces"))))

    def _coded_parts(self, strings: tf.Tensor, at_start: tf.Tensor) -> tf.RaggedTensor:
        """`_ids_of_parts` with the number of units that each token spells (see `_coded`)."""
        return _around(
            self._added_texts_normalized,
            self._coded_texts,
            self._normalize(strings),
            at_start,
            self._coded,
        )

    def _coded_texts(self, strings: tf.Tensor, at_start: tf.Tensor) -> tf.RaggedTensor:
        words, which, rows = self._split_words(strings, at_start)
        if isinstance(self._model, Unigrams):
            ids, unknown = self._model.with_lengths(words)
        else:  # a word that is unknown is one token
            ids = self._model(words)
            unknown = tf.gather(self._find_places.units(words), ids.value_rowids())
        units = tf.gather(self._units_of_id, ids.values)
        units = tf.where(ids.values == self.unknown_id, unknown, units)
        coded = ids.with_values(self._coded(ids.values, units))
        return _by_row(tf.gather(coded, which), rows, tf.size(strings, tf.int64))

    def _coded(self, ids: tf.Tensor, units: Any = None) -> tf.Tensor:
        """Ids and the numbers of units that they spell as one number each, int64."""
        units = tf.gather(self._units_of_id, ids) if units is None else units
        return tf.cast(ids, tf.int64) + self.vocabulary_size * tf.cast(units, tf.int64)

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        pieces = ids.with_values(self.bytes_of(ids.values))
        if self._continued_prefix:
            text = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
            prefix = re.sub(r"(\W)", r"\\\1", self._continued_prefix)
            return tf.strings.regex_replace(text, f"(^| ){prefix}", "")
        text = tf.strings.reduce_join(pieces, axis=-1)
        if not self._is_byte_level:
            text = tf.strings.regex_replace(text, r"\A ", "")
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__` but the definition, which is an asset."""
        return {
            "special_tokens": list(self.special_tokens),
            "mask_token": self.mask_token,
            "split_special_tokens": self.split_special_tokens,
        }

    def assets(self) -> dict[str, bytes]:
        """Returns the definition as `pipeline.json`."""
        return {DEFINITION_FILE: self._definition}

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        return (parse_json(assets[DEFINITION_FILE].decode(), DEFINITION_FILE),)


def read_added_tokens(listed: Any) -> list[AddedToken]:
    """Reads the `added_tokens` of a `tokenizer.json`.

    Args:
        listed: The descriptions; None if there are none.

    Raises:
        UserError: One is malformed.
    """
    found = []
    for one in listed or ():
        whole = isinstance(one, Mapping) and isinstance(one.get("content"), str)
        require(
            whole and is_integer(one.get("id")), "`added_tokens` must have an id and a content."
        )
        flags = {key: one.get(key, default) for key, default in AddedToken._field_defaults.items()}
        logical = all(isinstance(value, bool) for value in flags.values())
        require(logical, "Options of `added_tokens` must be true or false.", token=one)
        found.append(AddedToken(one["content"], **flags))
    return found


def file_tokens(definition: Mapping[str, Any]) -> list[str]:
    """Returns all tokens of a `tokenizer.json` in the order of their ids there.

    Ids without a token get a name.

    Args:
        definition: The content of the file.

    Raises:
        UserError: The vocabulary is malformed, or two tokens have the same id.
    """
    ids = model_tokens(definition.get("model"))
    read_added_tokens(definition.get("added_tokens"))
    ids |= {one["content"]: one["id"] for one in definition.get("added_tokens") or ()}
    require(bool(ids) and min(ids.values()) >= 0, "`model.vocab` must contain ids of 0 and above.")
    most = 2 * len(ids) + 1000
    size = max(ids.values()) + 1
    require(size <= most, f"`model.vocab` must have ids below {most}.", id=size - 1)
    tokens: list[str] = [""] * size
    for token, number in ids.items():
        require(
            tokens[number] == "",
            "Tokens must not have the same id.",
            tokens=[tokens[number], token],
        )
        tokens[number] = token
    return [token or _UNUSED.format(number) for number, token in enumerate(tokens)]


def _splitter(
    tokens: Iterable[AddedToken], ids: Mapping[str, int], normalize: Normalizer
) -> AddedTokenSplitter | None:
    tokens = [one for one in tokens if one.content]
    if not tokens:
        return None
    texts = normalize(tf.constant([one.content for one in tokens])).numpy()
    found = {
        text.decode(): one for text, one in reversed([*zip(texts, tokens, strict=True)]) if text
    }
    return AddedTokenSplitter(found, [ids[one.content] for one in found.values()])


def _around(
    splitter: AddedTokenSplitter | None,
    ids_of: Callable[[tf.Tensor, tf.Tensor], tf.RaggedTensor],
    strings: tf.Tensor,
    at_start: tf.Tensor,
    coded: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> tf.RaggedTensor:
    """The ids of texts: those of added tokens, and what a function finds between them."""
    if splitter is None:
        return ids_of(strings, at_start)
    count = tf.size(strings, tf.int64)
    parts, added = splitter(Words(strings, tf.range(count), at_start))
    is_added = added >= 0
    ids = ids_of(tf.where(is_added, "", parts.strings), parts.at_start)
    added_ids = tf.RaggedTensor.from_row_lengths(
        coded(tf.boolean_mask(added, is_added)), tf.cast(is_added, tf.int64), validate=False
    )
    return _by_row(tf.concat([added_ids, ids], axis=1), parts.rows, count)


def _by_row(ids: tf.RaggedTensor, rows: tf.Tensor, count: tf.Tensor) -> tf.RaggedTensor:
    """Joins the ids of parts, (parts, None), to those of texts, (texts, None)."""
    return tf.RaggedTensor.from_value_rowids(ids, rows, count, validate=False).merge_dims(1, 2)


def _bytes_of_tokens(tokens: Iterable[str], added: set[str], is_byte_level: bool) -> list[bytes]:
    """What tokens spell: characters, or bytes that characters or names represent."""
    byte = {character: position for position, character in enumerate(byte_characters())}
    names = {f"<0x{number:02X}>": bytes([number]) for number in range(256)}
    return [
        bytes(byte[character] for character in token)
        if is_byte_level and token not in added and set(token) <= byte.keys()
        else token.encode()
        if is_byte_level
        else names.get(token, token.encode())
        for token in tokens
    ]
