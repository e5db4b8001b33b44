"""The demo page: a self-contained HTML file that uses the REST API."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from keras_attn.reading import read_resource

_SCRIPTS = ("attention.js", "page.js")


class Page(NamedTuple):
    """The page with its HTTP headers.

    Attributes:
        html: The page.
        headers: Headers that forbid the browser to load or send anything elsewhere.
    """

    html: bytes
    headers: dict[str, str]


def page(models: Sequence[str]) -> Page:
    """Returns the demo page.

    Args:
        models: Names to choose from.
    """
    style, script = _part("page.css"), "".join(map(_part, _SCRIPTS))
    policy = {
        "default-src": "'none'",
        "connect-src": "'self'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    names = json.dumps(list(models)).replace("<", "\\u003c")
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": "; ".join(f"{key} {value}" for key, value in policy.items()),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    html = _part("page.html")
    # Names come last: they could contain the name of another piece.
    for name, piece in (("STYLE", style), ("SCRIPT", script), ("MODELS", names)):
        html = html.replace(f"PAGE_{name}", piece, 1)
    return Page(html.encode("utf-8"), headers)


def _part(name: str) -> str:
    return read_resource("serving", "page_parts", name)


def _hash(block: str) -> str:
    digest = hashlib.sha256(block.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
