"""Tokens around texts, as a `tokenizer.json` describes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_attn.validation import require, require_one_of

_KINDS = ("BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing")
_FRAMES = "`post_processor` must produce texts with at most a start and an end"


class TextFrame(NamedTuple):
    """The tokens around a text, and around the texts of a pair.

    Attributes:
        start: The token before a text, or before a pair.
        end: The token after a text.
        ends_between: Number of end tokens between the texts of a pair.
        segments: Whether the second text has another segment than the first.
    """

    start: str | None = None
    end: str | None = None
    ends_between: int = 0
    segments: bool = False


BERT_FRAME = TextFrame("[CLS]", "[SEP]", ends_between=1, segments=True)
ROBERTA_FRAME = TextFrame("<s>", "</s>", ends_between=2)


def read_frame(path: Path, post_processor: Any) -> TextFrame | None:
    """Reads the `post_processor` of a `tokenizer.json`.

    Args:
        path: The file, for error messages.
        post_processor: The description.

    Returns:
        The tokens, or None where there is no processor.

    Raises:
        UserError: It is malformed, or produces something that is not supported.
    """
    if post_processor is None:
        return None
    kind = post_processor.get("type") if isinstance(post_processor, Mapping) else post_processor
    require_one_of(f"post_processor of {path}", kind, _KINDS)
    if kind == "ByteLevel":
        return TextFrame()
    if kind == "Sequence":
        frames = [read_frame(path, one) or TextFrame() for one in post_processor["processors"]]
        framing = [frame for frame in frames if frame != TextFrame()]
        require(len(framing) <= 1, f"{path}: {_FRAMES}, once.", frames=framing)
        return framing[0] if framing else TextFrame()
    if kind == "TemplateProcessing":
        return _read_template(path, post_processor)
    start, end = post_processor["cls"][0], post_processor["sep"][0]
    is_bert = kind == "BertProcessing"
    return TextFrame(start, end, ends_between=1 if is_bert else 2, segments=is_bert)


def frame_processor(frame: TextFrame, ids: Mapping[str, int]) -> dict[str, Any]:
    """Describes a frame as a `post_processor`.

    Args:
        frame: The frame.
        ids: The ids of its tokens.
    """

    def special(token: str | None, segment: int = 0) -> list[dict[str, Any]]:
        return [] if token is None else [{"SpecialToken": {"id": token, "type_id": segment}}]

    def text(name: str, segment: int = 0) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    second = int(frame.segments)
    first = [*special(frame.start), text("A")]
    between = special(frame.end) * frame.ends_between
    tokens = {token for token in (frame.start, frame.end) if token is not None}
    return {
        "type": "TemplateProcessing",
        "single": first + special(frame.end),
        "pair": [*first, *between, text("B", second), *special(frame.end, second)],
        "special_tokens": {
            token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in tokens
        },
    }


def _read_template(path: Path, template: Mapping[str, Any]) -> TextFrame:
    names, _ = _parts(template.get("single") or ())
    around = f"{path}: {_FRAMES}."
    place = names.index("A") if "A" in names else -1
    before, after = names[: max(place, 0)], names[place + 1 :]
    require(place >= 0 and len(before) <= 1 and len(after) <= 1, around, found=names)
    start, end = ([*part, None][0] for part in (before, after))
    pair, segments = _parts(template.get("pair") or ())
    if not {"A", "B"} <= {*pair}:
        return TextFrame(start, end, ends_between=0 if end is None else 1)
    first, second = pair.index("A"), pair.index("B")
    between = pair[first + 1 : second]
    expected = [*before, "A", *([end] * len(between)), "B", *after]
    known = pair == expected and len(between) <= 2 and (end is None) == (not between)
    require(
        known,
        f"{path}: `post_processor` must produce pairs with one or two ends between the texts.",
        found=pair,
    )
    return TextFrame(start, end, len(between), segments[second] != segments[first])


def _parts(template: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[int]]:
    """The names in a template, A and B for the texts, and their segments."""
    parts = [next(iter(part.values())) for part in template]
    return [part["id"] for part in parts], [part.get("type_id", 0) for part in parts]
