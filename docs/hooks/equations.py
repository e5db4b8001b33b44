"""Renders equations as MathML when the site is built, so that readers need no script."""

import re

import latex2mathml.converter

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_BLOCK = re.compile(r"^\$\$\n?(.+?)\n?\$\$$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?![\w$])")


def on_page_markdown(markdown: str, **_) -> str:
    """Replaces `$…$` and `$$…$$` outside of code."""
    parts = _CODE.split(markdown)
    return "".join(part if at % 2 else _with_equations(part) for at, part in enumerate(parts))


def _with_equations(text: str) -> str:
    text = _BLOCK.sub(lambda found: _mathml(found[1], "block"), text)
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), text)


def _mathml(latex: str, display: str) -> str:
    mathml = latex2mathml.converter.convert(latex.strip(), display=display)
    # Markdown takes an element `math` at the beginning of a line for a block.
    return mathml if display == "block" else f"<span>{mathml}</span>"
