"""Models of a `tokenizer.json`: the splitting of words into tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from keras_attn.tokenizers.byte_words import byte_characters
from keras_attn.tokenizers.merges import check_merges, merge_model
from keras_attn.tokenizers.pipeline.options import made_of, read_options, require_option
from keras_attn.tokenizers.pipeline.unigrams import Unigrams
from keras_attn.tokenizers.sentencepiece_model import SentencePieceModel
from keras_attn.validation import is_integer, require, require_positive

SubwordModel = Callable[[tf.Tensor], tf.RaggedTensor]
_LONGEST_TOKEN = 256  # of FastWordpieceTokenizer


def make_model(part: Mapping[str, Any], ids: Mapping[str, int]) -> SubwordModel:
    """Makes what splits words, strings (words,), into ids, ragged int32 (words, None).

    Args:
        part: The `model` of a `tokenizer.json`.
        ids: The id of each token of the vocabulary.

    Raises:
        UserError: Something is not supported.
    """
    if isinstance(part, Mapping) and "type" not in part:  # in the oldest files
        part = dict(part) | {"type": "Unigram" if "unk_id" in part else "BPE"}
    makers = {name: _with_ids(make, ids) for name, make in _MAKERS.items()}
    return made_of("model", part, makers)


def model_tokens(part: Any) -> dict[str, int]:
    """Returns the tokens of a model and their ids in the file.

    Args:
        part: The `model` of a `tokenizer.json`.

    Raises:
        UserError: The vocabulary is malformed, or contains a token twice.
    """
    vocabulary: Any = part.get("vocab") if isinstance(part, Mapping) else None
    if isinstance(vocabulary, list):
        whole = all(isinstance(one, list) and len(one) == 2 for one in vocabulary)
        require(whole, "`model.vocab` must be a list of tokens and scores.")
        found = {token: number for number, (token, _) in enumerate(vocabulary)}
        require(len(found) == len(vocabulary), "`model.vocab` must not contain a token twice.")
        return found
    whole = isinstance(vocabulary, Mapping) and all(map(is_integer, vocabulary.values()))
    require(whole, "`model.vocab` must be an object of tokens and their ids.")
    return dict(vocabulary)


class WordPieces(tf.Module):
    """Splits words into the longest pieces.

    Args:
        tokens: The tokens by id; what is no piece has a name that is in no word.
        unknown: The token of a word that cannot be split.
        prefix: What pieces begin with that continue a word.
        most_characters: Number of characters in a word that is not unknown.
    """

    def __init__(
        self, tokens: Sequence[str], unknown: str, prefix: str, most_characters: int
    ) -> None:
        super().__init__(name="word_pieces")
        for token in tokens:
            size = len(token.removeprefix(prefix).encode("utf-8", "replace"))
            require(
                size <= _LONGEST_TOKEN,
                f"A token has at most {_LONGEST_TOKEN} bytes.",
                token=token[:50],
                bytes=size,
            )
        self._most_characters = most_characters
        self._most_bytes = 4 * most_characters
        self._pieces = tf_text.FastWordpieceTokenizer(
            list(tokens),
            suffix_indicator=prefix,
            max_bytes_per_word=self._most_bytes,
            token_out_type=tf.int32,
            unknown_token=unknown,
            no_pretokenization=True,
        )

    def __call__(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of words."""
        too_long = tf.strings.length(words, unit="UTF8_CHAR") > self._most_characters
        # The op counts bytes; so many are unknown to it.
        return self._pieces.tokenize(tf.where(too_long, "-" * (self._most_bytes + 1), words))


class Merges(tf.Module):
    """Splits words by merges, which a SentencePiece model contains.

    Args:
        model: The serialized model.
        ids: The id of each piece of the model.
        whole: Words that are not split, with their ids.
    """

    def __init__(
        self,
        model: bytes,
        ids: Sequence[int],
        whole: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(name="merges")
        self._model = SentencePieceModel(model)
        self._ids = tf.constant(ids, tf.int32)
        self._whole = None
        if whole is not None:
            self._whole = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant([word.encode() for word in whole], tf.string),
                    tf.constant([*whole.values()], tf.int32),
                ),
                default_value=-1,
            )

    def __call__(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of words."""
        whole = None if self._whole is None else self._whole.lookup(words)
        split = words if whole is None else tf.where(whole < 0, words, "")
        ids = self._model.encode(split)
        ids = ids.with_values(tf.gather(self._ids, ids.values))
        if whole is None:
            return ids
        known = whole >= 0
        first = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(whole, known), tf.cast(known, tf.int64), validate=False
        )
        return tf.concat([first, ids], axis=1)


def _with_ids(make: Callable, ids: Mapping[str, int]) -> Callable:
    return lambda part: make(part, ids)


def _word_piece(part: Mapping[str, Any], ids: Mapping[str, int]) -> SubwordModel:
    vocabulary, unknown, prefix, most = read_options(
        part,
        vocab=None,
        unk_token="[UNK]",
        continuing_subword_prefix="##",
        max_input_chars_per_word=100,
    )
    require_positive(max_input_chars_per_word=most)
    require(bool(prefix), "`WordPiece.continuing_subword_prefix` must not be empty.")
    require(unknown in vocabulary, "`WordPiece.unk_token` must be a token.", unk_token=unknown)
    tokens = [""] * (max(ids.values()) + 1)
    for token, number in ids.items():
        tokens[number] = token if token in vocabulary else f"\n{number}"
    return WordPieces(tokens, unknown, prefix, most)


def _bpe(part: Mapping[str, Any], ids: Mapping[str, int]) -> SubwordModel:
    vocabulary, listed, *_, ignore_merges = read_options(
        part,
        vocab=None,
        merges=[],
        dropout=None,
        unk_token=None,
        continuing_subword_prefix=None,
        end_of_word_suffix=None,
        fuse_unk=False,
        byte_fallback=False,
        ignore_merges=False,
    )
    require_option(
        part,
        dropout=(None, 0, 0.0),
        continuing_subword_prefix=(None, ""),
        end_of_word_suffix=(None, ""),
        byte_fallback=(False,),
    )
    # Older files write a merge as one text.
    pairs = [one.split(" ") if isinstance(one, str) else one for one in listed]
    require(all(len(one) == 2 for one in pairs), "`BPE.merges` must be pairs of tokens.")
    merges = [(first, second) for first, second in pairs]
    tokens = list(vocabulary)
    check_merges(tokens, merges, byte_characters())
    numbers = [ids[token] for token in tokens]
    model = merge_model(tokens, merges, byte_characters())
    whole = dict(zip(tokens, numbers, strict=True)) if ignore_merges else None
    return Merges(model, [*numbers, -1], whole)


def _unigram(part: Mapping[str, Any], ids: Mapping[str, int]) -> SubwordModel:
    vocabulary, unknown, byte_fallback = read_options(
        part, vocab=None, unk_id=None, byte_fallback=False
    )
    inside = is_integer(unknown) and 0 <= unknown < len(vocabulary)
    require(inside, "`Unigram.unk_id` must be the number of a token.", unk_id=unknown)
    found = [(token, score) for token, score in vocabulary if token]
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    spelled = byte_fallback and all(name in ids for name in names)
    require(
        not byte_fallback or spelled,
        "`Unigram.byte_fallback` needs a token for each byte.",
        missing=next((name for name in names if name not in ids), None),
    )
    in_bytes = [ids[name] for name in names] if spelled else ()
    tokens, scores = [token for token, _ in found], [score for _, score in found]
    numbers = [ids[token] for token in tokens]
    return Unigrams(tokens, scores, numbers, ids[vocabulary[unknown][0]], in_bytes)


_MAKERS = {"BPE": _bpe, "Unigram": _unigram, "WordPiece": _word_piece}
