"""Conversion of Hugging Face's GPT-2 tokenizer, from its older or newer files."""

from pathlib import Path
from typing import Any

from keras_attn.convert.json_files import (
    named_in_errors,
    read_optional_object,
    require_choice,
    require_values,
    token_content,
    tokens_of_ids,
)
from keras_attn.documents import read_json_object
from keras_attn.reading import read_text
from keras_attn.tokenizers import ByteLevelBpeTokenizer
from keras_attn.tokenizers.vocabulary_files import bpe_merges, bpe_vocabulary
from keras_attn.validation import require

_VOCABULARY = "vocab.json"
_MERGES = "merges.txt"
_FAST = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_CLASSES = ("GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast", None)
_END_OF_TEXT = "<|endoftext|>"
PADDING = "<|padding|>"
"""The token with id 0, which is not in the files."""


def read_byte_level_bpe(folder: Path) -> tuple[ByteLevelBpeTokenizer, bool]:
    """Reads `vocab.json` and `merges.txt`, or `tokenizer.json`, and `tokenizer_config.json`.

    Args:
        folder: The folder.

    Returns:
        The tokenizer, whose ids are one greater than in the files because 0 is padding, and
        whether every text begins with the start token.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported.
    """
    config = read_optional_object(folder / _CONFIG)
    require_values(folder / _CONFIG, config, add_prefix_space=False, errors="replace")
    require_choice(folder / _CONFIG, config, "tokenizer_class", _CLASSES)
    is_fast = (folder / _FAST).is_file()
    add_start = False
    if is_fast:
        tokens, merges, add_start = _read_fast(folder / _FAST)
    if not is_fast or (folder / _VOCABULARY).is_file():
        slow = _read_slow(folder)
        require(
            not is_fast or slow == (tokens, merges),
            f"{folder}: {_VOCABULARY} and {_MERGES} must have the same contents as {_FAST}.",
        )
        tokens, merges = slow
    require(PADDING not in tokens, f"{folder}: {PADDING!r} must not be a token of the vocabulary.")
    special = [
        token_content(config.get(f"{role}_token")) or _END_OF_TEXT for role in ("bos", "eos", "unk")
    ]
    with named_in_errors(folder):
        tokenizer = ByteLevelBpeTokenizer([PADDING, *tokens], merges, [PADDING, *special])
    return tokenizer, bool(config.get("add_bos_token", add_start))


def _read_slow(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The vocabulary and the merges of the older files."""
    vocabulary, merges = (str(folder / name) for name in (_VOCABULARY, _MERGES))
    tokens = bpe_vocabulary(read_text(vocabulary), vocabulary)
    return tokens, bpe_merges(read_text(merges), merges)


def _read_fast(path: Path) -> tuple[list[str], list[tuple[str, str]], bool]:
    """The vocabulary and the merges of a `tokenizer.json`, and whether it adds a start token."""
    content = read_json_object(path)
    model = content.get("model") or {}
    require_values(path, content, normalizer=None)
    require_values(
        path,
        model,
        type="BPE",
        dropout=None,
        byte_fallback=False,
        ignore_merges=False,
        fuse_unk=False,
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )
    words = content.get("pre_tokenizer") or {}
    require_values(path, words, type="ByteLevel", add_prefix_space=False, use_regex=True)
    tokens = tokens_of_ids(path, model.get("vocab"))
    for added in content.get("added_tokens") or ():
        token = added.get("content")
        require(token in tokens, f"{path}: an added token is not supported.", token=token)
    # Older files write a merge as one text.
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    return tokens, merges, _adds_start(path, content.get("post_processor"))


def _adds_start(path: Path, post_processor: dict[str, Any] | None) -> bool:
    """Whether texts begin with the start token."""
    kind = (post_processor or {}).get("type", "ByteLevel")
    template = (post_processor or {}).get("single", []) if kind == "TemplateProcessing" else None
    parts = ["Sequence"] if kind == "ByteLevel" else [next(iter(part)) for part in template or ()]
    known = parts in (["Sequence"], ["SpecialToken", "Sequence"])
    require(
        known, f"{path}: `post_processor` must add at most a start token.", type=kind, parts=parts
    )
    return len(parts) == 2
