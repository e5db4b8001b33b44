"""Conversion of T5's SentencePiece model, with the special ids of this package."""

import base64
import binascii
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_attn.checkpoints import require_values
from keras_attn.convert.files.json_files import read_optional_object, require_choice
from keras_attn.documents import read_json_object
from keras_attn.reading import read_bytes
from keras_attn.tokenizers import SentencePieceTokenizer, sentinel_tokens
from keras_attn.validation import UserError, require

if TYPE_CHECKING:
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

_MODEL = "spiece.model"
_FAST = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_CLASSES = ("T5Tokenizer", "T5TokenizerFast", "PreTrainedTokenizerFast", None)
_FIRST = ("<pad>", "</s>", "<unk>")
_START = "<s>"
_SENTINEL = re.compile(r"<extra_id_\d+>")
# Settings of the newer file: words are split at spaces and begin with one.
_WORDS = (["WhitespaceSplit", "Metaspace"], ["Metaspace"])


def read_t5_tokenizer(folder: Path) -> SentencePieceTokenizer:
    """Reads `spiece.model` (or `tokenizer.json` if missing), and `tokenizer_config.json`.

    A padding token is added before all pieces, and T5's padding, the first input of its decoder,
    becomes the start token. The sentinels, which are not pieces in `spiece.model`, come last, in
    descending order; their number is in `tokenizer_config.json`, by default 100.

    Args:
        folder: The folder.

    Returns:
        The tokenizer, whose ids are one greater than in transformers.

    Raises:
        UserError: A file is missing or damaged, or uses something that is not supported.
    """
    count = _sentinels(folder / _CONFIG)
    sentinels = sentinel_tokens(count)
    path = folder / _MODEL
    if path.is_file() or not (folder / _FAST).is_file():
        model = read_sentencepiece(path)
    else:
        path = folder / _FAST
        model = _read_fast(path, sentinels)
    first = tuple(piece.piece for piece in model.pieces[: len(_FIRST)])
    require(first == _FIRST, f"{path}: the first pieces must be {_FIRST}.", pieces=first)
    names = {piece.piece for piece in model.pieces}
    both = sorted(names.intersection([_START, *sentinels]))
    require(not both, f"{path}: special tokens must not be pieces.", pieces=both[:3])
    _use_our_ids(model, sentinels)
    special = ["</s>", "<unk>", *sentinels]
    return SentencePieceTokenizer(model.SerializeToString(deterministic=True), False, special)


def _use_our_ids(model: "ModelProto", sentinels: list[str]) -> None:
    model.pieces[0].piece = _START
    kinds = model.SentencePiece.Type
    pieces = [model.SentencePiece(piece="<pad>", type=kinds.CONTROL), *model.pieces]
    pieces += [model.SentencePiece(piece=one, type=kinds.USER_DEFINED) for one in sentinels]
    del model.pieces[:]
    model.pieces.extend(pieces)
    model.trainer_spec.pad_id, model.trainer_spec.bos_id = 0, 1
    model.trainer_spec.eos_id, model.trainer_spec.unk_id = 2, 3
    model.trainer_spec.bos_piece = _START
    model.trainer_spec.unk_surface = "<unk>"  # as in all tokenizers


def read_sentencepiece(path: Path) -> "ModelProto":
    """Reads a SentencePiece model.

    Raises:
        UserError: The file is missing or not a SentencePiece model.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    require(path.is_file(), f"{path}: no such file.")
    try:
        return ModelProto.FromString(read_bytes(path))
    except DecodeError:
        raise UserError(f"{path}: a SentencePiece model is expected.") from None


def _read_fast(path: Path, sentinels: list[str]) -> "ModelProto":
    """The SentencePiece model of a `tokenizer.json`, whose last pieces are the sentinels."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    content = read_json_object(path)
    unigram = content.get("model") or {}
    require_values(path, unigram, type="Unigram", unk_id=_FIRST.index("<unk>"), byte_fallback=False)
    normalizer = content.get("normalizer") or {}
    require_values(path, normalizer, type="Precompiled")
    words = content.get("pre_tokenizer") or {}
    steps = [step.get("type") for step in words.get("pretokenizers", [words])]
    require(steps in _WORDS, f"{path}: `pre_tokenizer` must be one of {_WORDS}.", steps=steps)

    model = ModelProto()
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.normalizer_spec.precompiled_charsmap = _bytes(path, normalizer)
    pieces = unigram["vocab"]
    while pieces and pieces[-1][0] in sentinels:
        pieces = pieces[:-1]
    kinds = model.SentencePiece.Type
    special = {"<pad>": kinds.CONTROL, "</s>": kinds.CONTROL, "<unk>": kinds.UNKNOWN}
    for piece, score in pieces:
        model.pieces.add(piece=piece, score=score, type=special.get(piece, kinds.NORMAL))
    return model


def _bytes(path: Path, normalizer: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(normalizer["precompiled_charsmap"], validate=True)
    except binascii.Error:
        raise UserError(f"{path}: `precompiled_charsmap` must be base64.") from None


def _sentinels(path: Path) -> int:
    """The number of sentinels; other added tokens are refused."""
    config = read_optional_object(path)
    require_choice(path, config, "tokenizer_class", _CLASSES)
    require_values(
        path, config, eos_token="</s>", unk_token="<unk>", pad_token="<pad>", sp_model_kwargs={}
    )
    number = config.get("extra_ids", 100)
    whole = isinstance(number, int) and not isinstance(number, bool) and number >= 0
    require(whole, f"{path}: `extra_ids` must be a whole number, 0 or more.", extra_ids=number)
    added = config.get("additional_special_tokens") or config.get("extra_special_tokens") or []
    others = [
        token for token in added if token not in _FIRST and not _SENTINEL.fullmatch(str(token))
    ]
    require(not others, f"{path}: added tokens are not supported.", tokens=others[:3])
    return number
