"""Conversion of Hugging Face's Marian tokenizers: SentencePiece models and vocabularies."""

from pathlib import Path
from typing import Any, NamedTuple

from keras_attn.checkpoints import require_values
from keras_attn.convert.files.json_files import (
    named_in_errors,
    read_optional_object,
    require_choice,
    require_tokens,
)
from keras_attn.convert.files.written_config import without_counterpart
from keras_attn.convert.tokenizers.sentencepiece_file import read_sentencepiece
from keras_attn.reading import read_bytes, read_text
from keras_attn.tokenizers import MarianTokenizer, Tokenizer
from keras_attn.tokenizers.sentencepiece import MODEL_FILE
from keras_attn.tokenizers.vocabulary_files import bpe_vocabulary
from keras_attn.validation import require

TOKENIZER_CONFIG = "tokenizer_config.json"
_ADDED = "added_tokens.json"
_CLASSES = ("MarianTokenizer", None)
_START = "<s>"
_SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_AS_THEY_ARE = {"lstrip": False, "rstrip": False, "single_word": False}


class MarianVocabulary(NamedTuple):
    """The vocabulary of one side.

    Attributes:
        path: The file of the vocabulary, for error messages.
        tokenizer: The tokenizer.
        rows: The checkpoint's id of each of our ids, -1 for our padding. Its own padding, with
            which generation begins, is our start token.
    """

    path: Path
    tokenizer: MarianTokenizer
    rows: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Number of the checkpoint's tokens."""
        return len(self.rows) - 1

    @property
    def start_id(self) -> int:
        """The checkpoint's id of our start token."""
        return self.rows[self.tokenizer.start_id]

    @property
    def end_id(self) -> int:
        """The checkpoint's id of the end."""
        return self.rows[self.tokenizer.end_id]

    def rows_of(self, size: int) -> tuple[int, ...]:
        """`rows` of an embedding that may have more than the vocabulary.

        Args:
            size: Number of the checkpoint's rows, as many as `tokens` or more.
        """
        return (*self.rows, *range(self.tokens, size))


def read_marian_vocabularies(folder: Path) -> tuple[MarianVocabulary, MarianVocabulary]:
    """Reads the vocabularies of source and target.

    Args:
        folder: The folder, with `source.spm`, `target.spm`, `vocab.json`, `tokenizer_config.json`,
            which may be missing, and where that asks for separate vocabularies
            `target_vocab.json`.

    Returns:
        Those of source and target.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported.
    """
    config = read_optional_object(folder / TOKENIZER_CONFIG)
    _check_config(folder / TOKENIZER_CONFIG, config)
    _check_added(folder / _ADDED, read_optional_object(folder / _ADDED))
    own = "target_vocab.json" if config.get("separate_vocabs") else "vocab.json"
    return _read(folder / "source.spm", folder / "vocab.json"), _read(
        folder / "target.spm", folder / own
    )


def _read(pieces: Path, vocabulary: Path) -> MarianVocabulary:
    model = read_sentencepiece(pieces)
    byte = model.SentencePiece.Type.BYTE
    require(
        all(piece.type != byte for piece in model.pieces),
        f"{pieces}: pieces of single bytes are not supported.",
    )
    rules = model.denormalizer_spec.precompiled_charsmap
    require(not rules, f"{pieces}: denormalization rules are not supported.", bytes=len(rules))
    tokens = bpe_vocabulary(read_text(vocabulary), str(vocabulary))
    for token in _SPECIAL.values():
        require(token in tokens, f"{vocabulary}: the vocabulary must contain {token!r}.")
    require(_START not in tokens, f"{vocabulary}: the vocabulary must not contain {_START!r}.")
    ids = {token: number for number, token in enumerate(tokens)}
    first = [ids.pop(token) for token in _SPECIAL.values()]
    with named_in_errors(vocabulary):
        special = ["<pad>", _START, "</s>", "<unk>"]
        tokenizer = MarianTokenizer(read_bytes(pieces), [*special, *ids])
    return MarianVocabulary(vocabulary, tokenizer, (-1, *first, *ids.values()))


def _check_config(path: Path, config: dict[str, Any]) -> None:
    require_choice(path, config, "tokenizer_class", _CLASSES)
    require_choice(path, config, "separate_vocabs", (True, False), False)
    require_values(path, config, split_special_tokens=False)
    kwargs = config.get("sp_model_kwargs")
    require(not kwargs, f"{path}: `sp_model_kwargs` must be empty.", sp_model_kwargs=kwargs)
    require_tokens(path, config, _SPECIAL)
    for key in ("additional_special_tokens", "extra_special_tokens"):
        _check_added(path, config.get(key) or ())
    added = (config.get("added_tokens_decoder") or {}).values()
    _check_added(path, [token.get("content") for token in added])
    for token in added:
        require_values(path, token, **_AS_THEY_ARE)


def _check_added(path: Path, tokens: Any) -> None:
    others = [token for token in tokens if token not in _SPECIAL.values()]
    require(not others, f"{path}: added tokens are not supported.", tokens=others[:3])


def written_marian_rows(tokenizer: Tokenizer, size: int, architecture: str) -> tuple[int, ...]:
    """The checkpoint's id of each of our rows, as `MarianVocabulary.rows_of` returns them.

    The end has the first id and padding, our start, the last one of the vocabulary.

    Args:
        tokenizer: The tokenizer.
        size: Number of our rows, which may be more than the tokens.
        architecture: Name of the class in transformers, for error messages.

    Raises:
        UserError: The tokenizer is of another kind.
    """
    if not isinstance(tokenizer, MarianTokenizer):
        raise without_counterpart(architecture, tokenizer=type(tokenizer).__name__)
    tokens = tokenizer.vocabulary_size
    return (-1, tokens - 2, *range(tokens - 2), *range(tokens - 1, size - 1))


def marian_tokenizer_files(
    source: MarianTokenizer, target: MarianTokenizer, is_shared: bool
) -> dict[str, Any]:
    """The files of two tokenizers: the inverse of `read_marian_vocabularies`.

    Args:
        source: That of the source.
        target: That of the target.
        is_shared: Whether both have one vocabulary.
    """
    special = {**_SPECIAL}
    files: dict[str, Any] = {
        "source.spm": source.assets()[MODEL_FILE],
        "target.spm": target.assets()[MODEL_FILE],
        "vocab.json": _ids(source),
        TOKENIZER_CONFIG: {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": not is_shared,
            "model_max_length": 512,
            "clean_up_tokenization_spaces": False,
            **special,
        },
        "special_tokens_map.json": special,
    }
    return files if is_shared else files | {"target_vocab.json": _ids(target)}


def _ids(tokenizer: MarianTokenizer) -> dict[str, int]:
    rows = written_marian_rows(tokenizer, tokenizer.vocabulary_size, "")
    tokens = dict(zip(rows[1:], ["<pad>", *tokenizer.vocabulary[2:]], strict=True))
    return {tokens[number]: number for number in sorted(tokens)}
