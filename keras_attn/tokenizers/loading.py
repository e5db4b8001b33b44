"""Training of tokenizers by kind, and loading of saved tokenizers."""

import hashlib
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_attn.documents import read_json_object
from keras_attn.reading import path_inside, read_bytes
from keras_attn.tokenizers.base import CONFIG_FILE, FORMAT_VERSION, Tokenizer
from keras_attn.tokenizers.byte_level_bpe import ByteLevelBpeTokenizer
from keras_attn.tokenizers.characters import CharacterTokenizer
from keras_attn.tokenizers.marian import MarianTokenizer
from keras_attn.tokenizers.pipeline import PipelineTokenizer
from keras_attn.tokenizers.sentencepiece import SentencePieceTokenizer
from keras_attn.tokenizers.symbols import SymbolTokenizer
from keras_attn.tokenizers.word_piece import WordPieceTokenizer
from keras_attn.validation import UserError, require, require_one_of

_TRAINED = {
    cls.kind: cls
    for cls in (
        CharacterTokenizer,
        SymbolTokenizer,
        SentencePieceTokenizer,
        WordPieceTokenizer,
        ByteLevelBpeTokenizer,
    )
}
# Those that only conversions make as well.
_CLASSES = _TRAINED | {cls.kind: cls for cls in (MarianTokenizer, PipelineTokenizer)}
# What the classes, and the libraries below them, say of values that do not fit.
_DAMAGES = (ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError)


def train_tokenizer(kind: str, texts: Iterable[str], **options: Any) -> Tokenizer:
    """Trains a tokenizer.

    Args:
        kind: "characters", "symbols", "sentencepiece", "word_piece" or "byte_level_bpe".
        texts: Strings to train on.
        **options: Arguments of the `train` method of that kind.

    Returns:
        The tokenizer.

    Raises:
        UserError: Unknown kind or option, or what the kind's `train` raises.

    Examples:
        >>> tokenizer = train_tokenizer("characters", ["abc", "cab"])
        >>> tokenizer.tokenize(["cab"]).to_list()
        [[6, 4, 5]]
    """
    require_one_of("kind", kind, _TRAINED)
    train = _TRAINED[kind].train
    allowed = [name for name in inspect.signature(train).parameters if name != "texts"]
    for option in options:
        require_one_of(f"option of {kind}", option, allowed)
    return train(texts, **options)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Loads what `Tokenizer.save` wrote.

    Args:
        folder: The folder that holds `tokenizer.json`.

    Returns:
        A tokenizer of the class that was saved.

    Raises:
        UserError: A file is missing, damaged or from a newer version; the message names it.

    Examples:
        >>> CharacterTokenizer("abc").save("tokenizer")
        >>> load_tokenizer("tokenizer").tokenize(["cab"]).to_list()
        [[6, 4, 5]]
    """
    path = path_inside(Path(folder), CONFIG_FILE, f"{folder}: a tokenizer's folder")
    description = _read_description(path)
    cls = _CLASSES[description["kind"]]
    assets = {
        name: _read_asset(path_inside(path.parent, name, f"{path}: `assets`"), digest)
        for name, digest in description["assets"].items()
    }
    try:
        return cls.from_config(description["config"], assets)
    except _DAMAGES as error:
        raise UserError(f"{path}: damaged tokenizer: {error}") from None


def _read_description(path: Path) -> dict[str, Any]:
    description = read_json_object(path)
    version = description.get("format_version")
    require(
        isinstance(version, int) and 1 <= version <= FORMAT_VERSION,
        f"{path}: `format_version` must be at most {FORMAT_VERSION}.",
        format_version=version,
    )
    kind = description.get("kind")
    require(
        isinstance(kind, str) and kind in _CLASSES,
        f"{path}: `kind` must be one of {', '.join(_CLASSES)}.",
        kind=kind,
    )
    for field in ("config", "assets"):
        value = description.get(field)
        require(isinstance(value, dict), f"{path}: `{field}` must be an object.", **{field: value})
    return description


def _read_asset(path: Path, digest: str) -> bytes:
    data = read_bytes(path)
    require(
        hashlib.sha256(data).hexdigest() == digest,
        f"{path}: damaged tokenizer: its SHA-256 must be that of {CONFIG_FILE}.",
        expected=digest,
    )
    return data
