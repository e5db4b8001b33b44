"""Tokenizer of Marian: pieces of a SentencePiece model, with ids from a separate vocabulary."""

import json
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_attn.tokenizers.base import SPECIAL_TOKENS, Tokenizer, ids_after_special_tokens
from keras_attn.tokenizers.sentencepiece import MODEL_FILE
from keras_attn.tokenizers.sentencepiece_model import SentencePieceModel
from keras_attn.tokenizers.special_text import SpecialTextSplitter
from keras_attn.tokenizers.vocabulary_files import bpe_vocabulary

VOCABULARY_FILE = "vocab.json"
_LANGUAGE = r"(?s)^(>>.*?<<|).*$"
_SPACE = "▁"


class MarianTokenizer(Tokenizer):
    """Splits text into the pieces of a SentencePiece model, and looks them up in a vocabulary.

    The vocabulary may contain pieces that are not in the model, such as those of the other
    language, and lack pieces of the model, which are then unknown. A run of characters that the
    model does not know is one piece, looked up like the others. Tokens are those of
    `transformers.MarianTokenizer`: `>>`, a language and `<<` at the beginning of a text are one
    token, and so are padding, end and unknown anywhere in a text. The padding of that class, with
    which its models begin to generate, is the start token here.

    Args:
        model: The serialized SentencePiece model.
        tokens: The vocabulary, `<pad>`, `<s>`, `</s>`, `<unk>` first.

    Raises:
        UserError: `model` is not a SentencePiece model, or the vocabulary does not begin with these
            tokens or contains a token twice.

    Reference: Junczys-Dowmunt et al., 2018, https://arxiv.org/abs/1804.00344.

    Examples:
        >>> tokenizer = MarianTokenizer(model, tokens)  # doctest: +SKIP
    """

    kind = "marian"
    _files = (MODEL_FILE, VOCABULARY_FILE)

    def __init__(self, model: bytes, tokens: Sequence[str]) -> None:
        super().__init__(tokens)
        self._pieces = SentencePieceModel(model)
        self._model = model
        pad, _, end, unknown = SPECIAL_TOKENS
        self._special_text = SpecialTextSplitter(
            {pad: self.start_id, end: self.end_id, unknown: self.unknown_id}
        )
        pieces = [token.encode() for token in tokens[len(SPECIAL_TOKENS) :]]
        self._id_of_piece = ids_after_special_tokens(
            tf.constant(pieces, tf.string), self.unknown_id
        )

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        language = tf.strings.regex_replace(strings, _LANGUAGE, r"\1", replace_global=False)
        length = tf.strings.length(language)
        text = tf.strings.substr(strings, length, tf.strings.length(strings) - length)
        pieces = self._pieces.encode(text, tf.string)
        ids = pieces.with_values(self._id_of_piece.lookup(pieces.values))
        is_there = length > 0
        languages = tf.RaggedTensor.from_row_lengths(
            self._id_of_piece.lookup(tf.boolean_mask(language, is_there)),
            tf.cast(is_there, tf.int64),
            validate=False,
        )
        return tf.concat([languages, ids], axis=1)

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.strings.strip(tf.strings.regex_replace(super()._detokenize(ids), _SPACE, " "))

    def get_config(self) -> dict[str, Any]:
        """Returns an empty dictionary: model and vocabulary are assets."""
        return {}

    def assets(self) -> dict[str, bytes]:
        """Returns the serialized model and the vocabulary under their file names."""
        ids = {token: number for number, token in enumerate(self.vocabulary)}
        vocabulary = json.dumps(ids, ensure_ascii=False, indent=0)
        return {MODEL_FILE: self._model, VOCABULARY_FILE: vocabulary.encode()}

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        tokens = bpe_vocabulary(assets[VOCABULARY_FILE].decode(), VOCABULARY_FILE)
        return assets[MODEL_FILE], tokens
