"""Texts that a user hands to a task, before anything is done with them."""

from collections.abc import Sequence

from keras_attn.validation import UserError, require


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Makes sure that several Unicode texts were given.

    Args:
        name: What they are called in an error.
        texts: The texts.

    Returns:
        The texts as a list.

    Raises:
        UserError: A single string was given, or something that is no Unicode text.
    """
    if isinstance(texts, str | bytes):
        raise UserError(f"`{name}` must be several texts, not one. Received: {shortened(texts)!r}.")
    texts = list(texts)
    for position, text in enumerate(texts):
        require(_is_unicode(text), f"`{name}[{position}]` must be Unicode text.", text=text)
    return texts


def check_pairs(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Makes sure that every source has a target.

    Args:
        sources: The texts that go in.
        targets: A text for each.

    Returns:
        Both as lists.

    Raises:
        UserError: Their numbers differ, or one of them is no text.
    """
    sources, targets = check_texts("sources", sources), check_texts("targets", targets)
    require(
        len(sources) == len(targets),
        "Every source must have one target.",
        sources=len(sources),
        targets=len(targets),
    )
    return sources, targets


def shortened(text: str | bytes) -> str | bytes:
    """The text, or its beginning where it is too long for an error."""
    most = 40
    return text if len(text) <= most else text[:most] + ("…" if isinstance(text, str) else b"...")


def _is_unicode(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, such as Python makes of malformed input
        return False
    return True
