"""T5's SentencePiece model, with the special ids that tokenizers have here."""

import re
from pathlib import Path

from keras_attn.convert.json_files import read_optional_object, require_values
from keras_attn.tokenizers import SentencePieceTokenizer
from keras_attn.validation import UserError, require, require_one_of

_MODEL = "spiece.model"
_CONFIG = "tokenizer_config.json"
_CLASSES = ("T5Tokenizer", "T5TokenizerFast", "PreTrainedTokenizerFast", None)
_FIRST = ("<pad>", "</s>", "<unk>")
_START = "<s>"
_SENTINEL = re.compile(r"<extra_id_\d+>")


def read_t5_tokenizer(folder: Path) -> SentencePieceTokenizer:
    """Reads `spiece.model`, and from `tokenizer_config.json` how many sentinels follow its pieces.

    A row for padding goes before all pieces, and T5's padding, with which its decoder begins,
    becomes the start token. The sentinels, which are no pieces in the file, come last, the highest
    first.

    Args:
        folder: The folder.

    Returns:
        The tokenizer, each id one greater than in transformers.

    Raises:
        UserError: A file is missing or damaged, or asks for something that is not supported.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2 as protocol

    path = folder / _MODEL
    require(path.is_file(), f"{path}: no such file.")
    model = protocol.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        raise UserError(f"{path}: a SentencePiece model is expected.") from None
    first = tuple(piece.piece for piece in model.pieces[: len(_FIRST)])
    require(first == _FIRST, f"{path}: the first pieces must be {_FIRST}.", pieces=first)
    names = {piece.piece for piece in model.pieces}
    require(_START not in names, f"{path}: {_START!r} must not be a piece.")
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(_sentinels(folder)))]
    both = sorted(names.intersection(sentinels))
    require(not both, f"{path}: the sentinels must not be pieces.", pieces=both[:3])

    piece = protocol.ModelProto.SentencePiece
    model.pieces[0].piece = _START
    control, defined = piece.Type.CONTROL, piece.Type.USER_DEFINED
    pieces = [piece(piece="<pad>", type=control), *model.pieces]
    pieces += [piece(piece=sentinel, type=defined) for sentinel in sentinels]
    del model.pieces[:]
    model.pieces.extend(pieces)
    model.trainer_spec.pad_id, model.trainer_spec.bos_id = 0, 1
    model.trainer_spec.eos_id, model.trainer_spec.unk_id = 2, 3
    model.trainer_spec.bos_piece = _START
    return SentencePieceTokenizer(
        model.SerializeToString(deterministic=True),
        special_tokens=["</s>", "<unk>", *sentinels],
    )


def _sentinels(folder: Path) -> int:
    """The number of sentinels; other added tokens are refused."""
    path = folder / _CONFIG
    config = read_optional_object(path)
    try:
        require_one_of("tokenizer_class", config.get("tokenizer_class"), _CLASSES)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
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
