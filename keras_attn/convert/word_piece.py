"""Conversion of Hugging Face's BERT tokenizer, from its older or newer files."""

from pathlib import Path
from typing import Any

from keras_attn.convert.json_files import (
    named_in_errors,
    read_optional_object,
    require_choice,
    require_tokens,
    require_values,
    tokens_of_ids,
)
from keras_attn.documents import read_json_object
from keras_attn.reading import read_text
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.tokenizers.vocabulary_files import word_piece_tokens
from keras_attn.validation import require

_VOCABULARY = "vocab.txt"
_FAST = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_CLASSES = ("BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", None)
_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
# Our option: key in tokenizer_config.json, key in tokenizer.json, default.
_OPTIONS = {
    "lowercase": ("do_lower_case", "lowercase", True),
    "strip_accents": ("strip_accents", "strip_accents", None),
    "split_chinese": ("tokenize_chinese_chars", "handle_chinese_chars", True),
}
_FRAME = ["[CLS]", "A", "[SEP]"]


def read_word_piece(folder: Path) -> WordPieceTokenizer:
    """Reads `vocab.txt`, or `tokenizer.json`, and `tokenizer_config.json`.

    Options in both JSON files are taken from `tokenizer_config.json`.

    Args:
        folder: The folder.

    Returns:
        The tokenizer, with the ids of the files.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported.
    """
    config = read_optional_object(folder / _CONFIG)
    _check_config(folder / _CONFIG, config)
    normalizer, tokens = {}, None
    if (folder / _FAST).is_file():
        normalizer, tokens = _read_fast(folder / _FAST)
    if (folder / _VOCABULARY).is_file() or tokens is None:
        lines = word_piece_tokens(read_text(folder / _VOCABULARY))
        require(
            tokens in (None, lines),
            f"{folder}: {_VOCABULARY} and {_FAST} must have the same contents.",
        )
        tokens = lines
    options = {
        name: config.get(key, normalizer.get(fast, default))
        for name, (key, fast, default) in _OPTIONS.items()
    }
    with named_in_errors(folder):
        tokenizer = WordPieceTokenizer(tokens, **options)
    require(tokenizer.pad_id == 0, f"{folder}: the id of [PAD] must be 0.", id=tokenizer.pad_id)
    return tokenizer


def _check_config(path: Path, config: dict[str, Any]) -> None:
    require_values(path, config, do_basic_tokenize=True)
    require(not config.get("never_split"), f"{path}: `never_split` is not supported.")
    require_choice(path, config, "tokenizer_class", _CLASSES)
    require_tokens(path, config, _SPECIAL)


def _read_fast(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The normalizer's options and the vocabulary of a `tokenizer.json`."""
    content = read_json_object(path)
    parts = {key: content.get(key) or {} for key in ("normalizer", "pre_tokenizer", "model")}
    types = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}
    for key, part in parts.items():
        expected = types.get(key, "WordPiece")
        found = part.get("type") if isinstance(part, dict) else part
        require(found == expected, f"{path}: `{key}` must be a {expected}.", found=found)
    require_values(path, parts["normalizer"], clean_text=True)
    require_values(
        path,
        parts["model"],
        unk_token="[UNK]",
        continuing_subword_prefix="##",
        max_input_chars_per_word=100,
    )
    _check_frame(path, content.get("post_processor"))
    tokens = tokens_of_ids(path, parts["model"].get("vocab"))
    for added in content.get("added_tokens") or ():
        token = added.get("content")
        require(
            token in _SPECIAL.values(), f"{path}: an added token is not supported.", token=token
        )
    return parts["normalizer"], tokens


def _check_frame(path: Path, post_processor: dict[str, Any] | None) -> None:
    """Checks that texts are between [CLS] and [SEP]."""
    kind = (post_processor or {}).get("type")
    if kind in (None, "BertProcessing"):
        return
    frame = [
        next(iter(part.values()))["id"]
        for part in post_processor.get("single", ())
        if kind == "TemplateProcessing"
    ]
    require(frame == _FRAME, f"{path}: `post_processor` must produce {_FRAME}.", found=frame)
