"""Files of transformers' tokenizers, from tokenizers with the same ids."""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from keras_attn.convert.files.written_config import without_counterpart
from keras_attn.tokenizers import (
    ByteLevelBpeTokenizer,
    PipelineTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    WordPieceTokenizer,
)
from keras_attn.tokenizers.byte_level_bpe import MERGES_FILE
from keras_attn.tokenizers.pipeline.tokenizer import file_tokens
from keras_attn.tokenizers.sentencepiece import MODEL_FILE
from keras_attn.tokenizers.word_piece import VOCABULARY_FILE

_FAST = "tokenizer.json"
_CONFIG = "tokenizer_config.json"
_MAP = "special_tokens_map.json"
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_SPACES = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def word_piece_files(tokenizer: Tokenizer, max_length: int, architecture: str) -> dict[str, Any]:
    """The files of BERT's tokenizer: the inverse of `read_tokenizer`.

    Args:
        tokenizer: The tokenizer.
        max_length: Most tokens of a text.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The tokenizer is of another kind, or has an option without a counterpart.
    """
    _require(tokenizer, WordPieceTokenizer, architecture)
    names = {"pad": 0, "unk": 0, "cls": 0, "sep": 0, "mask": 0}
    tokens = {f"{role}_token": f"[{role.upper()}]" for role in names}
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": tokenizer.split_chinese,
        "strip_accents": tokenizer.strip_accents,
        "lowercase": tokenizer.lowercase,
    }
    ids = _ids(tokenizer.vocabulary)
    fast = {
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _template(ids, ["[CLS]", "A", "[SEP]"], [("B", 1), ("[SEP]", 1)]),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": tokenizer.strip_accents,
        "tokenize_chinese_chars": tokenizer.split_chinese,
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": True,
    }
    files = _files(fast, config, tokens, ids)
    return files | {VOCABULARY_FILE: tokenizer.assets()[VOCABULARY_FILE]}


def pipeline_files(
    tokenizer: PipelineTokenizer, max_length: int, architecture: str
) -> dict[str, Any]:
    """The file that a tokenizer was read from: the inverse of `read_tokenizer`.

    Args:
        tokenizer: The tokenizer.
        max_length: Most tokens of a text.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The file has no padding, or special tokens are split.
    """
    definition = tokenizer.definition
    pad, start, end, unknown = tokenizer.special_tokens
    if pad not in file_tokens(definition):
        raise without_counterpart(architecture, padding=pad)
    if tokenizer.split_special_tokens:
        raise without_counterpart(architecture, split_special_tokens=True)
    tokens = {"pad_token": pad, "cls_token": start, "bos_token": start, "sep_token": end}
    tokens |= {"eos_token": end, "unk_token": unknown}
    if tokenizer.mask_token is not None:
        tokens["mask_token"] = tokenizer.mask_token
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
    }
    return {_FAST: definition, _CONFIG: config | tokens, _MAP: tokens}


def gpt2_tokenizer_files(
    tokenizer: Tokenizer, add_start: bool, architecture: str
) -> dict[str, Any]:
    """The files of GPT-2's tokenizer, without padding: the inverse of `read_tokenizer`.

    Args:
        tokenizer: The tokenizer.
        add_start: Whether every text begins with the start token.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The tokenizer is of another kind, or has an option without a counterpart.
    """
    _require(tokenizer, ByteLevelBpeTokenizer, architecture)
    pad, start, end, unknown = tokenizer.special_tokens
    if pad in (start, end, unknown) or tokenizer.pad_id != 0:
        raise without_counterpart(architecture, padding=pad)
    ids = _ids(tokenizer.vocabulary[1:])
    tokens = {"bos_token": start, "eos_token": end, "unk_token": unknown}
    fast = _byte_level(tokenizer, ids)
    fast["post_processor"] = _template(ids, [*([start] if add_start else []), "A"], [("B", 1)])
    config = {
        "tokenizer_class": "GPT2Tokenizer",
        "add_bos_token": add_start,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
    }
    return _files(fast, config, tokens, ids) | _slow(tokenizer, ids)


def roberta_tokenizer_files(
    tokenizer: Tokenizer, padding_id: int, max_length: int, architecture: str
) -> dict[str, Any]:
    """The files of RoBERTa's tokenizer: the inverse of `read_tokenizer`.

    Args:
        tokenizer: The tokenizer.
        padding_id: The id of padding in the files; ids below it are one less there.
        max_length: Most tokens of a text.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The tokenizer is of another kind, or has an option without a counterpart.
    """
    _require(tokenizer, ByteLevelBpeTokenizer, architecture)
    if tuple(tokenizer.special_tokens) != ("<pad>", "<s>", "</s>", "<unk>"):
        raise without_counterpart(architecture, special_tokens=list(tokenizer.special_tokens))
    pad, *others = tokenizer.vocabulary
    ids = _ids([*others[:padding_id], pad, *others[padding_id:]])
    start, end = (
        {"cls_token": "<s>", "bos_token": "<s>"},
        {"sep_token": "</s>", "eos_token": "</s>"},
    )
    tokens = {**start, **end, "pad_token": pad, "unk_token": "<unk>"}
    if tokenizer.mask_id is not None:
        tokens["mask_token"] = tokenizer.id_to_token(tokenizer.mask_id)
    fast = _byte_level(tokenizer, ids) | {
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["</s>", ids["</s>"]],
            "cls": ["<s>", ids["<s>"]],
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    }
    config = {
        "tokenizer_class": "RobertaTokenizer",
        "add_prefix_space": False,
        "trim_offsets": True,
        "model_max_length": max_length,
        "clean_up_tokenization_spaces": False,
    }
    return _files(fast, config, tokens, ids) | _slow(tokenizer, ids)


def t5_tokenizer_files(tokenizer: Tokenizer, architecture: str) -> dict[str, Any]:
    """The files of T5's tokenizer, without padding: the inverse of `read_t5_tokenizer`.

    Args:
        tokenizer: The tokenizer.
        architecture: Name of the model's class in transformers, for error messages.

    Raises:
        UserError: The tokenizer is of another kind, or has an option without a counterpart.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    _require(tokenizer, SentencePieceTokenizer, architecture)
    model = ModelProto.FromString(tokenizer.assets()[MODEL_FILE])
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    if trainer.model_type != trainer.UNIGRAM:
        kind = trainer.ModelType.Name(trainer.model_type)
        raise without_counterpart(architecture, model_type=kind.lower())
    flags = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    for flag in flags:
        if not getattr(normalizer, flag):
            raise without_counterpart(architecture, **{flag: False})
    kinds = model.SentencePiece.Type
    if trainer.treat_whitespace_as_suffix or any(one.type == kinds.BYTE for one in model.pieces):
        raise without_counterpart(architecture, pieces="of bytes, or with spaces after words")
    pieces = list(model.pieces)[1:]
    pieces[0].piece = "<pad>"
    vocabulary = [(one.piece, 0.0 if one.type != kinds.NORMAL else one.score) for one in pieces]
    sentinels = 0
    while pieces and pieces[-1].piece == f"<extra_id_{sentinels}>":
        sentinels += 1
        del pieces[-1]
    extra = [f"<extra_id_{number}>" for number in range(sentinels)]
    del model.pieces[:]
    model.pieces.extend(pieces)
    trainer.pad_id, trainer.bos_id, trainer.eos_id, trainer.unk_id = 0, -1, 1, 2
    trainer.ClearField("bos_piece")
    ids = _ids([piece for piece, _ in vocabulary])
    tokens = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    charsmap = base64.b64encode(normalizer.precompiled_charsmap).decode()
    fast = {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, _SPACES],
        },
        "post_processor": _template(ids, ["A", "</s>"], [("B", 0), ("</s>", 0)]),
        "decoder": _SPACES,
        "model": {
            "type": "Unigram",
            "unk_id": ids["<unk>"],
            "vocab": vocabulary,
            "byte_fallback": False,
        },
    }
    config = {
        "tokenizer_class": "T5Tokenizer",
        "extra_ids": sentinels,
        "additional_special_tokens": extra,
        "clean_up_tokenization_spaces": False,
    }
    files = _files(fast, config, tokens, ids, extra)
    return files | {"spiece.model": model.SerializeToString(deterministic=True)}


def _require(tokenizer: Tokenizer, kind: type[Tokenizer], architecture: str) -> None:
    if not isinstance(tokenizer, kind):
        raise without_counterpart(architecture, tokenizer=type(tokenizer).__name__)
    options = tokenizer.get_config()
    lost = {"split_special_tokens": options.get("split_special_tokens", False)}
    if kind is not WordPieceTokenizer:
        lost["lowercase"] = options["lowercase"]
    for name, value in lost.items():
        if value:
            raise without_counterpart(architecture, **{name: value})


def _files(
    fast: dict[str, Any],
    config: dict[str, Any],
    tokens: dict[str, str],
    ids: dict[str, int],
    further: Sequence[str] = (),
) -> dict[str, Any]:
    special = sorted({*tokens.values(), *further}, key=ids.__getitem__)
    added = [
        {
            "id": ids[token],
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in special
    ]
    start = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    return {_FAST: start | fast, _CONFIG: config | tokens, _MAP: tokens}


def _byte_level(tokenizer: ByteLevelBpeTokenizer, ids: dict[str, int]) -> dict[str, Any]:
    return {
        "normalizer": None,
        "pre_tokenizer": _BYTES,
        "post_processor": None,
        "decoder": _BYTES,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": [list(pair) for pair in tokenizer.merges],
        },
    }


def _slow(tokenizer: ByteLevelBpeTokenizer, ids: dict[str, int]) -> dict[str, Any]:
    return {"vocab.json": ids, MERGES_FILE: tokenizer.assets()[MERGES_FILE]}


def _template(
    ids: dict[str, int], single: Sequence[str], second: Iterable[tuple[str, int]]
) -> dict[str, Any]:
    """What is around a text, and around the second of a pair, with its segments."""
    first = [(part, 0) for part in single]
    parts = [*first, *second]

    def described(part: str, segment: int) -> dict[str, Any]:
        kind = "SpecialToken" if part in ids and part not in ("A", "B") else "Sequence"
        return {kind: {"id": part, "type_id": segment}}

    special = {part for part, _ in parts if part not in ("A", "B")}
    return {
        "type": "TemplateProcessing",
        "single": [described(*part) for part in first],
        "pair": [described(*part) for part in parts],
        "special_tokens": {
            token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in special
        },
    }


def _ids(tokens: Iterable[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}
