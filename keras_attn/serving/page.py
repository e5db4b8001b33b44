"""The demo page: a self-contained HTML file that uses the REST API."""

import base64
import functools
import hashlib
from typing import NamedTuple

from keras_attn.pages import common_style
from keras_attn.reading import read_resource

# In this order, as one script: all of them use the first ones, and the last one starts the page.
_SCRIPTS = (
    "elements.js",
    "requests.js",
    "answers.js",
    "attention.js",
    "attention_map.js",
    "attention_picture.js",
    "form_text.js",
    "form_labels.js",
    "form_label_sets.js",
    "form_numbers.js",
    "form_ranking.js",
    "form_answers.js",
    "form_image.js",
    "form_tags.js",
    "form_vectors.js",
    "form_forecast.js",
    "form_sampling.js",
    "form_any.js",
    "page.js",
)


class Page(NamedTuple):
    """The page with its HTTP headers.

    Attributes:
        html: The page.
        headers: Headers that forbid the browser to load or send anything elsewhere.
    """

    html: bytes
    headers: dict[str, str]


@functools.cache
def page() -> Page:
    """Returns the demo page."""
    style, script = common_style() + _part("page.css"), "".join(map(_part, _SCRIPTS))
    policy = {
        "default-src": "'none'",
        "connect-src": "'self'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": "; ".join(f"{key} {value}" for key, value in policy.items()),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    html = _part("page.html").replace("PAGE_STYLE", style, 1).replace("PAGE_SCRIPT", script, 1)
    return Page(html.encode("utf-8"), headers)


def _part(name: str) -> str:
    return read_resource("serving", "page_parts", name)


def _hash(block: str) -> str:
    digest = hashlib.sha256(block.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
