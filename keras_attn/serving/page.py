"""The demo page: one HTML file that needs nothing from outside and asks the REST API."""

import base64
import hashlib
import importlib.resources
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

_BLOCK = r"(?s)<{0}>(.*?)</{0}>"
_MODELS = "MODEL_NAMES"


class Page(NamedTuple):
    """An answer of HTTP.

    Attributes:
        html: The page.
        headers: What forbids the browser to load or send anything elsewhere.
    """

    html: bytes
    headers: dict[str, str]


def page(models: Sequence[str]) -> Page:
    """Returns the demo page.

    Args:
        models: Names to choose from.
    """
    template = importlib.resources.files("keras_attn.serving").joinpath("page.html")
    html = template.read_text("utf-8")
    policy = {
        "default-src": "'none'",
        "connect-src": "'self'",
        "script-src": _hash(html, "script"),
        "style-src": _hash(html, "style"),
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
    return Page(html.replace(_MODELS, names, 1).encode("utf-8"), headers)


def _hash(html: str, element: str) -> str:
    block = re.search(_BLOCK.format(element), html)[1]
    digest = hashlib.sha256(block.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
