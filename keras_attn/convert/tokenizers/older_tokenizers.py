"""Older files of tokenizers, described as a `tokenizer.json` describes them."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_attn.checkpoints import (
    LINES,
    MERGES,
    SENTENCE_PIECES,
    VOCABULARY,
    require_tokenizer,
)
from keras_attn.convert.tokenizers.sentencepiece_file import read_sentencepiece
from keras_attn.reading import read_text
from keras_attn.tokenizers.pipeline.text_frame import (
    BERT_FRAME,
    ROBERTA_FRAME,
    TextFrame,
    frame_processor,
)
from keras_attn.tokenizers.vocabulary_files import bpe_merges, bpe_vocabulary, word_piece_tokens
from keras_attn.validation import require, require_one_of

Definition = dict[str, Any]


class _Family(NamedTuple):
    """Details of the tokenizers of SentencePiece models.

    Attributes:
        first: Tokens in place of the model's first ones.
        replaced: Number of these.
        last: Tokens after all others.
        unknown: The token of unknown text.
        frame: What is around texts.
        mask: The token in place of one that is hidden.
    """

    first: tuple[str, ...] = ()
    replaced: int = 0
    last: tuple[str, ...] = ()
    unknown: str = "<unk>"
    frame: TextFrame = BERT_FRAME
    mask: str = "[MASK]"


_FAMILIES = {
    "Albert": _Family(),
    "BigBird": _Family(),
    "Camembert": _Family(
        first=("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"),
        replaced=1,
        last=("<mask>",),
        frame=ROBERTA_FRAME,
        mask="<mask>",
    ),
    "DebertaV2": _Family(unknown="[UNK]", last=("[MASK]",)),
    "XLMRoberta": _Family(
        first=("<s>", "<pad>", "</s>", "<unk>"),
        replaced=3,
        last=("<mask>",),
        frame=ROBERTA_FRAME,
        mask="<mask>",
    ),
}
# By the `model_type` of a configuration, where the tokenizer's files do not name a class.
_CLASS_OF_MODEL = {
    "albert": "Albert",
    "big_bird": "BigBird",
    "camembert": "Camembert",
    "deberta-v2": "DebertaV2",
    "mpnet": "MPNet",
    "nystromformer": "Albert",
    "xlm-roberta": "XLMRoberta",
}


def older_definition(folder: Path, config: Mapping[str, Any], model_type: Any) -> Definition:
    """Reads `vocab.txt`, `vocab.json` and `merges.txt`, or a SentencePiece model.

    Args:
        folder: The folder.
        config: Content of its `tokenizer_config.json`.
        model_type: That of its `config.json`, for files that do not name the class.

    Returns:
        What `tokenizer.json` would contain, without `post_processor` where it follows from the
        special tokens.

    Raises:
        UserError: There is no such file, one is damaged, or the class is not supported.
    """
    require_tokenizer(folder)
    kind = tokenizer_class(config) or _CLASS_OF_MODEL.get(model_type, "")
    if (folder / LINES).is_file():
        return _word_piece(read_lines(folder), kind)
    if (folder / VOCABULARY).is_file():
        return _byte_level(*read_merges(folder), config)
    model = next(folder / name for name in SENTENCE_PIECES if (folder / name).is_file())
    return _pieces(model, kind, config)


def tokenizer_class(config: Mapping[str, Any]) -> str | None:
    """Returns the class in a `tokenizer_config.json`, such as "Bert" for `BertTokenizerFast`."""
    name = config.get("tokenizer_class")
    return str(name).removesuffix("Fast").removesuffix("Tokenizer") if name else None


def read_lines(folder: Path) -> list[str]:
    """Reads a `vocab.txt`.

    Raises:
        UserError: The file cannot be read.
    """
    return word_piece_tokens(read_text(folder / LINES))


def read_merges(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Reads the tokens of a `vocab.json`, and the pairs of a `merges.txt`.

    Raises:
        UserError: A file is missing or damaged.
    """
    vocabulary, merges = str(folder / VOCABULARY), str(folder / MERGES)
    tokens = bpe_vocabulary(read_text(vocabulary), vocabulary)
    return tokens, bpe_merges(read_text(merges), merges)


def _word_piece(tokens: list[str], kind: str) -> Definition:
    special = [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
    if kind == "MPNet":
        special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    return {
        "added_tokens": _added(tokens, special, before="<mask>"),
        "normalizer": {"type": "BertNormalizer"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }


def _byte_level(
    tokens: list[str], merges: list[tuple[str, str]], config: Mapping[str, Any]
) -> Definition:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
    special += [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
    prefix = bool(config.get("add_prefix_space", False))
    return {
        "added_tokens": _added(tokens, special, before="<mask>"),
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix},
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }


def _pieces(path: Path, kind: str, config: Mapping[str, Any]) -> Definition:
    require_one_of(f"tokenizer_class with {path}", kind, _FAMILIES)
    family, proto = _FAMILIES[kind], read_sentencepiece(path)
    unigram = proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM
    require(unigram, f"{path}: only models of the type unigram are supported.")
    scores = {piece.piece: piece.score for piece in proto.pieces}
    pieces = [piece.piece for piece in proto.pieces]
    if kind == "Albert":
        scores |= {piece: score - 100 for piece, score in scores.items() if _is_number(piece)}
    last = [token for token in family.last if token not in scores]
    tokens = [*family.first, *pieces[family.replaced :], *last]
    require(len({*tokens}) == len(tokens), f"{path}: special tokens must not be pieces.")
    new = dict.fromkeys((*family.first, *last), 0.0) | {"<unk>NOTUSED": -100.0}
    special = [
        family.frame.start,
        family.frame.end,
        family.unknown,
        "<pad>",
        "[PAD]",
        "<s>",
        "</s>",
    ]
    found = {token: number for number, token in enumerate(tokens)}
    require(family.unknown in found, f"{path}: a piece {family.unknown} is expected.")
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    named = [piece.piece for piece in proto.pieces if piece.type in (3, 4)]
    kept = dict.fromkeys([*special, *named, family.mask])
    return {
        "added_tokens": _added(tokens, kept, before=family.mask),
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(kind, charsmap, config)},
        "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"},
        "post_processor": frame_processor(family.frame, found),
        "model": {
            "type": "Unigram",
            "unk_id": found[family.unknown],
            "vocab": [[token, new.get(token, scores.get(token, 0.0))] for token in tokens],
        },
    }


def _normalizers(kind: str, charsmap: str, config: Mapping[str, Any]) -> list[Definition]:
    def replace(text: str, by: str) -> Definition:
        return {"type": "Replace", "pattern": {"String": text}, "content": by}

    compiled = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    lowercase = [{"type": "Lowercase"}] if config.get("do_lower_case", kind == "Albert") else []
    if kind == "Albert":
        accents = [{"type": "NFKD"}, {"type": "StripAccents"}]
        accents = [] if config.get("keep_accents") else accents
        quotes = [replace("``", '"'), replace("''", '"')]
        return [*quotes, *accents, *lowercase, compiled, spaces]
    if kind == "DebertaV2":
        return [*lowercase, {"type": "Strip"}, compiled, spaces]
    return [
        compiled,
        {"type": "Strip", "strip_left": False, "strip_right": True},
        spaces | {"content": "▁"},
    ]


def _added(tokens: Sequence[str], special: Any, before: str) -> list[Definition]:
    """Special tokens; one of them takes the spaces before it along."""
    ids = {token: number for number, token in enumerate(tokens)}
    return [
        {
            "id": ids[token],
            "content": token,
            "lstrip": token == before,
            "normalized": False,
            "special": True,
        }
        for token in special
        if token in ids
    ]


def _is_number(piece: str) -> bool:
    """Whether a piece ends with a digit and a comma, which are then separate pieces."""
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
