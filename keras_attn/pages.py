"""Parts of self-contained HTML pages: JSON inside HTML, the common style."""

import json
from typing import Any

from keras_attn.reading import read_resource


def common_style() -> str:
    """Returns the style sheet with the colors, type and controls of all pages."""
    return read_resource("pages.css")


def json_inside_html(content: Any) -> str:
    """Returns JSON in which no text can end or begin an HTML element."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
