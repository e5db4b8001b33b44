"""Tokenizer that uses a SentencePiece model."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attn.tokenizers.base import SPECIAL_TOKENS, Tokenizer, read_texts
from keras_attn.tokenizers.sentencepiece_model import SentencePieceModel
from keras_attn.tokenizers.sentinels import sentinel_tokens
from keras_attn.tokenizers.special_text import SpecialTextSplitter
from keras_attn.validation import UserError, require, require_one_of, require_positive

MODEL_FILE = "sentencepiece.model"
MODEL_TYPES = ("bpe", "unigram")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"


class SentencePieceTokenizer(Tokenizer):
    """Splits text into the pieces of a SentencePiece model, BPE or unigram.

    The model normalizes text (NFKC, runs of spaces become one), so `detokenize(tokenize(x))` is
    normalized text.

    Args:
        model: The serialized model; its padding, start, end and unknown ids must be 0 to 3.
        lowercase: Whether text is lower-cased before the model sees it.
        special_tokens: Pieces that are recognized in a text, such as T5's sentinels; the text
            between them is split separately. None by default: text that looks like a special token
            is split like other text.

    Raises:
        UserError: `model` is not a SentencePiece model, has other special ids, or lacks one of
            `special_tokens`.

    Reference: Kudo and Richardson 2018, "SentencePiece", https://arxiv.org/abs/1808.06226.

    Examples:
        >>> texts = ["the cat sat", "the dog ran"] * 20
        >>> tokenizer = train_tokenizer("sentencepiece", texts, vocabulary_size=30)
        >>> tokenizer.detokenize(tokenizer.tokenize(["the cat"])).numpy()[0].decode()
        'the cat'
    """

    kind = "sentencepiece"
    _files = (MODEL_FILE,)

    def __init__(
        self, model: bytes, lowercase: bool = False, special_tokens: Sequence[str] = ()
    ) -> None:
        resource = SentencePieceModel(model)
        pieces = resource.pieces()
        super().__init__(pieces, lowercase)
        ids = {piece: number for number, piece in enumerate(pieces)}
        missing = [token for token in special_tokens if token not in ids]
        require(not missing, "`special_tokens` must be pieces of the model.", missing=missing)
        self._model = model
        self._resource = resource
        self._special_tokens = np.array(list(special_tokens), dtype=object)  # see `_tokens`
        if special_tokens:
            self._special_text = SpecialTextSplitter(
                {token: ids[token] for token in special_tokens}
            )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int = 8000,
        model_type: str = "bpe",
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        lowercase: bool = False,
        input_sentence_size: int = 4_000_000,
        sentinels: int = 0,
        split_by_whitespace: bool = True,
    ) -> "SentencePieceTokenizer":
        """Trains a model in memory; the same texts always give the same bytes.

        Args:
            texts: Strings to train on; give both languages for a joint vocabulary.
            vocabulary_size: Largest number of ids, special tokens included; small texts give fewer.
            model_type: "bpe" or "unigram".
            character_coverage: Fraction of the characters in the texts that get a piece; the
                rarest characters become unknown. In (0, 1].
            byte_fallback: Whether unknown characters are spelled in 256 pieces for single bytes.
            lowercase: Whether text is lower-cased, now and in `tokenize`.
            input_sentence_size: Most texts to train on; a fixed random sample is used of more
                texts.
            sentinels: Number of T5's sentinels `<extra_id_0>`, `<extra_id_1>`, …, which are
                recognized in texts; they have the last ids, in descending order.
            split_by_whitespace: Whether a piece lies within a word. Otherwise frequent phrases
                become pieces, such as "waste of time" (Liu et al. 2025, "SuperBPE",
                https://arxiv.org/abs/2503.13423); training then needs about 60 bytes of memory for
                each byte of text.

        Returns:
            The tokenizer.

        Raises:
            UserError: An option is wrong, the texts are empty, or `vocabulary_size` is too small
                for their characters (the message names the limit).
        """
        require_positive(vocabulary_size=vocabulary_size, input_sentence_size=input_sentence_size)
        require_one_of("model_type", model_type, MODEL_TYPES)
        require(
            isinstance(character_coverage, int | float) and 0 < character_coverage <= 1,
            "`character_coverage` must be a number in (0, 1].",
            character_coverage=character_coverage,
        )
        whole = isinstance(sentinels, int) and not isinstance(sentinels, bool) and sentinels >= 0
        require(whole, "`sentinels` must be a whole number, 0 or more.", sentinels=sentinels)
        require(
            isinstance(split_by_whitespace, bool),
            "`split_by_whitespace` must be true or false.",
            split_by_whitespace=split_by_whitespace,
        )
        lines = [text for text in read_texts(texts, lowercase) if text.strip()]
        require(bool(lines), "`texts` must contain a text that is not blank.", not_blank=0)
        minimum = len(SPECIAL_TOKENS) + sentinels + 1
        require(
            vocabulary_size >= minimum,
            f"`vocabulary_size` must be at least {minimum}.",
            vocabulary_size=vocabulary_size,
        )
        if len(lines) > input_sentence_size:
            draw = np.random.default_rng(0)
            rows = draw.choice(len(lines), input_sentence_size, replace=False)
            lines = [lines[row] for row in rows]
        special = sentinel_tokens(sentinels)
        model = _train_model(
            lines,
            vocab_size=vocabulary_size,
            model_type=model_type,
            character_coverage=character_coverage,
            byte_fallback=byte_fallback,
            user_defined_symbols=special,
            split_by_whitespace=split_by_whitespace,
            # Longer ones where they may be phrases.
            max_sentencepiece_length=16 if split_by_whitespace else 24,
        )
        return cls(_with_last(model, special), lowercase, special)

    def _tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        return self._resource.encode(strings)

    def _tokenize_placed(self, strings, places):
        ids, begins, ends = self._resource.encode_with_offsets(strings)
        codes = tf.strings.unicode_decode(strings, "UTF-8", errors="replace")
        characters = tf.strings.unicode_encode(tf.expand_dims(codes.values, 1), "UTF-8")
        of_bytes = tf.repeat(places, tf.strings.length(characters))
        of_bytes = tf.concat([of_bytes, [0]], axis=0)  # for tokens without a byte
        first = tf.cumsum(tf.strings.length(strings), exclusive=True)
        first = tf.gather(first, ids.value_rowids())
        begin = tf.gather(of_bytes, first + begins.values)
        last = tf.gather(of_bytes, tf.maximum(first + ends.values - 1, 0))
        end = tf.where(ends.values > begins.values, last + 1, begin)
        return ids, ids.with_values(begin), ids.with_values(end)

    def _detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        known = (ids.values >= 0) & (ids.values < self.vocabulary_size)
        return self._resource.decode(ids.with_values(tf.where(known, ids.values, self.unknown_id)))

    @property
    def splits_at_spaces(self) -> bool:
        """True for BPE models as `train` makes them, without special tokens in texts.

        No piece then goes on after a space, spaces around words have no meaning, and merges of one
        word do not affect another. Sums of unigram scores depend on all words, by their rounding.
        """
        if self.lowercase or self._special_text is not None:
            return False
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto.FromString(self._model)
        normalizer, trainer = proto.normalizer_spec, proto.trainer_spec
        return (
            trainer.model_type == sentencepiece_model_pb2.TrainerSpec.BPE
            and not trainer.treat_whitespace_as_suffix
            and normalizer.name == "nmt_nfkc"
            and normalizer.add_dummy_prefix
            and normalizer.remove_extra_whitespaces
            and normalizer.escape_whitespaces
            and _SPACE in self.vocabulary
            and not any(_SPACE in piece[1:] for piece in self.vocabulary)
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of `__init__` but the model, which is an asset."""
        return {"lowercase": self.lowercase, "special_tokens": list(self._special_tokens)}

    def assets(self) -> dict[str, bytes]:
        """Returns the serialized model under its file name."""
        return {MODEL_FILE: self._model}

    @classmethod
    def _read_assets(cls, assets: dict[str, bytes]) -> tuple:
        return (assets[MODEL_FILE],)


def _train_model(lines: list[str], vocab_size: int, **options: Any) -> bytes:
    import sentencepiece  # only training needs it

    buffer = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=buffer,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            pad_id=0,
            bos_id=1,
            eos_id=2,
            unk_id=3,
            unk_surface=SPECIAL_TOKENS[Tokenizer.unknown_id],
            max_sentence_length=1 << 30,  # bytes; longer lines would be left out silently
            num_threads=4,  # a fixed number, because the order of its sums depends on it
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        raise _training_error(str(error), vocab_size) from None
    return buffer.getvalue()


def _with_last(model: bytes, names: list[str]) -> bytes:
    """The model with some of its pieces after all others."""
    if not names:
        return model
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = sorted(proto.pieces, key=lambda piece: piece.piece in names)
    del proto.pieces[:]
    proto.pieces.extend(pieces)
    return proto.SerializeToString(deterministic=True)


def _training_error(message: str, vocabulary_size: int) -> UserError:
    limit = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if not limit:
        return UserError(f"SentencePiece could not train: {message.strip()}")
    return UserError(
        f"`vocabulary_size` must be at least {limit[1]} for these texts (or `character_coverage` "
        f"lower). Received: vocabulary_size={vocabulary_size}."
    )
