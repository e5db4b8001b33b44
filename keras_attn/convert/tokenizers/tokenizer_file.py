"""Reading of Hugging Face's tokenizers, from a `tokenizer.json` or from older files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_attn.checkpoints import LINES, MERGES, VOCABULARY, require_values
from keras_attn.convert.files.json_files import named_in_errors, read_optional_object, token_content
from keras_attn.convert.tokenizers.older_tokenizers import (
    older_definition,
    read_lines,
    read_merges,
    tokenizer_class,
)
from keras_attn.documents import read_json_object
from keras_attn.tokenizers import (
    ByteLevelBpeTokenizer,
    PipelineTokenizer,
    Tokenizer,
    WordPieceTokenizer,
)
from keras_attn.tokenizers.pipeline.subword_models import model_tokens
from keras_attn.tokenizers.pipeline.text_frame import (
    BERT_FRAME,
    ROBERTA_FRAME,
    TextFrame,
    frame_processor,
    read_frame,
)
from keras_attn.tokenizers.pipeline.tokenizer import file_tokens
from keras_attn.validation import require

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"
PADDING = "<|padding|>"
"""The token with id 0 where the files have no padding."""

_MAP = "special_tokens_map.json"
# Classes that read the file alone; those of a family also read options of the configuration.
_GENERAL = ("PreTrained", "TokenizersBackend")
# Our names of special tokens, the keys of theirs, and what they are called if they are not named.
_ROLES = {
    "pad": (("pad_token",), ("[PAD]", "<pad>", "<|padding|>")),
    "start": (("cls_token", "bos_token"), ("[CLS]", "<s>", "<|endoftext|>")),
    "end": (("sep_token", "eos_token"), ("[SEP]", "</s>", "<|endoftext|>")),
    "unk": (("unk_token",), ("[UNK]", "<unk>", "<|endoftext|>")),
    "mask": (("mask_token",), ("[MASK]", "<mask>")),
}
_OF_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
_BERT_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class ReadTokenizer(NamedTuple):
    """A tokenizer of a checkpoint.

    Attributes:
        tokenizer: The tokenizer, in which padding is 0.
        padding_id: The checkpoint's id of padding. Ids below it are one greater here; the others
            are the same. Where the checkpoint has no padding, it is the number of tokens.
        with_start: Whether a start token is before a text.
        ends_between: Number of end tokens between the texts of a pair: 1 as in BERT, 2 as in
            RoBERTa, 0 if texts have no end.
        segments: Whether the second text of a pair has another segment than the first, and
            transformers gives the segments to the model.
        notes: Notes for the user, one line each.
    """

    tokenizer: Tokenizer
    padding_id: int
    with_start: bool
    ends_between: int
    segments: bool
    notes: tuple[str, ...] = ()


def read_tokenizer(folder: Path) -> ReadTokenizer:
    """Reads `tokenizer.json`, or the older files, with `tokenizer_config.json`.

    Args:
        folder: The folder.

    Returns:
        The tokenizer, with what is around texts.

    Raises:
        UserError: There is no tokenizer file, one is damaged, or something is not supported; one
            line that names the file and the part.

    Examples:
        >>> read = read_tokenizer(Path("bert"))  # a folder of `save_pretrained`
        >>> read.padding_id, read.with_start, read.ends_between, read.segments
        (0, True, 1, True)
    """
    config = read_optional_object(folder / _MAP) | read_optional_object(folder / CONFIG)
    _check_config(folder / CONFIG, config)
    if (folder / FILE).is_file():
        path = folder / FILE
        definition = _with_options(read_json_object(path), config)
        _check_older_files(folder, definition)
    else:
        model_type = read_optional_object(folder / "config.json").get("model_type")
        path = folder
        definition = _with_options(older_definition(folder, config, model_type), config)
    frame = read_frame(path, definition.get("post_processor"))
    with named_in_errors(path):
        tokens = file_tokens(definition)
    roles = _roles(path, folder / CONFIG, config, definition, tokens, frame)
    if frame is None:
        frame = _usual_frame(roles)
        ids = {token: number for number, token in enumerate(tokens)}
        definition = definition | {"post_processor": frame_processor(frame, ids)}
    with named_in_errors(path):
        tokenizer = _make(definition, tokens, roles, bool(config.get("split_special_tokens")))
    pad = tokenizer.vocabulary[tokenizer.pad_id]
    padding_id = tokens.index(pad) if pad in tokens else len(tokens)
    with_start = bool(config.get("add_bos_token", frame.start is not None))
    segments = frame.segments and _gives_segments(config)
    return ReadTokenizer(tokenizer, padding_id, with_start, frame.ends_between, segments)


def _gives_segments(config: Mapping[str, Any]) -> bool:
    names = config.get("model_input_names")
    if isinstance(names, list):
        return "token_type_ids" in names
    return tokenizer_class(config) != "TokenizersBackend"  # which names them where it has them


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    require_values(path, config, do_basic_tokenize=True)
    require(not config.get("never_split"), f"{path}: `never_split` is not supported.")


def _with_options(definition: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The description with the options that the class of the tokenizer reads elsewhere."""
    if tokenizer_class(config) in _GENERAL:
        return definition
    normalizer, words = definition.get("normalizer"), definition.get("pre_tokenizer")
    if isinstance(normalizer, Mapping) and normalizer.get("type") == "BertNormalizer":
        found = {key: config[name] for name, key in _OF_NORMALIZER.items() if name in config}
        definition = definition | {"normalizer": {**normalizer, **found}}
    if isinstance(words, Mapping) and words.get("type") == "ByteLevel":
        prefix = config.get("add_prefix_space", words.get("add_prefix_space", True))
        definition = definition | {"pre_tokenizer": {**words, "add_prefix_space": prefix}}
    return definition


def _check_older_files(folder: Path, definition: Mapping[str, Any]) -> None:
    """Raises if there are older files too, and they differ."""
    model = definition.get("model")
    model = model if isinstance(model, Mapping) else {}
    with named_in_errors(folder / FILE):
        ids = model_tokens(model)
    listed = sorted(ids, key=ids.__getitem__)
    message = "must have the same contents."
    if model.get("type") == "WordPiece" and (folder / LINES).is_file():
        same = read_lines(folder) == listed
        require(same, f"{folder}: {LINES} and {FILE} {message}")
    if model.get("type") == "BPE" and (folder / VOCABULARY).is_file():
        tokens, merges = read_merges(folder)
        same = tokens == listed and merges == _pairs(model)
        require(same, f"{folder}: {VOCABULARY} with {MERGES} and {FILE} {message}")


def _pairs(model: Mapping[str, Any]) -> list[tuple[str, ...]]:
    # Older files write a merge as one text.
    return [
        tuple(one.split(" ")) if isinstance(one, str) else tuple(one)
        for one in model.get("merges") or ()
    ]


def _roles(
    path: Path,
    config_path: Path,
    config: Mapping[str, Any],
    definition: Mapping[str, Any],
    tokens: Iterable[str],
    frame: TextFrame | None,
) -> dict[str, str | None]:
    """The special tokens by our names."""
    known = {*tokens}
    roles: dict[str, str | None] = {}
    for role, (keys, names) in _ROLES.items():
        found = {key: token_content(config[key]) for key in keys if config.get(key) is not None}
        for key, token in found.items():
            require(
                token in known,
                f"{config_path}: `{key}` must be a token of the vocabulary.",
                **{key: token},
            )
        first = next(iter(found.values()), None)
        roles[role] = first or next((name for name in names if name in known), None)
    for role, token in () if frame is None else (("start", frame.start), ("end", frame.end)):
        if token is not None:
            require(token in known, f"{path}: `post_processor` must add tokens.", token=token)
            roles[role] = token
    unknown = definition["model"].get("unk_token")
    roles["unk"] = unknown if unknown in known else roles["unk"]
    if roles["pad"] in (None, roles["start"], roles["end"]):  # often named for want of another
        require(PADDING not in known, f"{path}: {PADDING!r} must not be a token.")
        roles["pad"] = PADDING
    return roles


def _usual_frame(roles: Mapping[str, str | None]) -> TextFrame:
    """What is around texts in families with such tokens, whose older files do not say it."""
    start, end = roles["start"], roles["end"]
    if start is None or end is None or start == end:
        return TextFrame()
    return (BERT_FRAME if start == "[CLS]" else ROBERTA_FRAME)._replace(start=start, end=end)


def _make(
    definition: Mapping[str, Any],
    tokens: list[str],
    roles: Mapping[str, str | None],
    split_special_tokens: bool,
) -> Tokenizer:
    """The tokenizer of a class for such files, or of the class for all."""
    if _is_bert(definition, tokens):
        normalizer = definition["normalizer"]
        return WordPieceTokenizer(
            tokens,
            normalizer.get("lowercase", True),
            normalizer.get("strip_accents"),
            normalizer.get("handle_chinese_chars", True),
            split_special_tokens,
        )
    pad = roles["pad"] or PADDING
    end = roles["end"] or roles["start"] or roles["unk"] or pad
    special = [pad, roles["start"] or end, end, roles["unk"] or end]
    if _is_gpt2(definition, tokens, special):
        merges = _pairs(definition["model"])
        return ByteLevelBpeTokenizer([pad, *tokens], merges, special, False, split_special_tokens)
    return PipelineTokenizer(definition, special, roles["mask"], split_special_tokens)


def _is_bert(definition: Mapping[str, Any], tokens: list[str]) -> bool:
    """Whether a file describes what `WordPieceTokenizer` does."""
    added = [one["content"] for one in definition.get("added_tokens") or ()]
    return (
        tokens[0] == "[PAD]"
        and {*_BERT_TOKENS} <= {*tokens}
        and {*added} <= {*_BERT_TOKENS}
        and _has(definition["model"], "WordPiece", unk_token="[UNK]", max_input_chars_per_word=100)
        and _has(definition["model"], "WordPiece", continuing_subword_prefix="##")
        and _has(definition.get("normalizer"), "BertNormalizer", clean_text=True)
        and _has(definition.get("pre_tokenizer"), "BertPreTokenizer")
        and len(definition["model"]["vocab"]) == len(tokens)
    )


def _is_gpt2(definition: Mapping[str, Any], tokens: list[str], special: list[str]) -> bool:
    """Whether a file describes what `ByteLevelBpeTokenizer` does."""
    added = definition.get("added_tokens") or ()
    pad, *others = special
    return (
        pad not in tokens
        and {one["content"] for one in added} == {*others}
        and not any(one.get("lstrip") or one.get("rstrip") for one in added)
        and definition.get("normalizer") is None
        and _has(definition["model"], "BPE", ignore_merges=False, dropout=None, byte_fallback=False)
        and not definition["model"].get("continuing_subword_prefix")
        and not definition["model"].get("end_of_word_suffix")
        and _has(
            definition.get("pre_tokenizer"), "ByteLevel", add_prefix_space=False, use_regex=True
        )
        and len(definition["model"]["vocab"]) == len(tokens)
    )


def _has(part: Any, kind: str, **values: Any) -> bool:
    """Whether a part is of a type, and its options have these values or are missing."""
    return (
        isinstance(part, Mapping)
        and part.get("type") == kind
        and all(part.get(key, value) == value for key, value in values.items())
    )
