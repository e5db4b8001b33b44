"""Finds words and sentences that the project's style does not allow (see CONTRIBUTING.md)."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

# A module docstring names a thing or starts with a verb.
QUESTION = re.compile(r"(What|How|Which|Who|Whose|Whoever|Whatever|Whether|Where|When|Why)\b")

BANNED = {
    r"tells?|told|telling": "report, specify, say, describe",
    r"shares? of": "fraction of",
    r"stands?|standing|stood": "is, means, is at",
    r"is there": "exists, is available",
    r"likewise": "also, the same for",
    r"of which|of whom|of whose": "whose, and … of them",
    r"whoever|whosoever": "callers, users",
    r"strangers?|stranger's|strangers'": "untrusted, other, your own",
    r"in good order": "cleanly",
}
BRITISH = {
    r"(?:token|normal|serial|initial|optim|quant|summar|recogn|organ|special|general|central|real"
    r"|memor|orthogonal|parallel|vector|regular|minim|maxim|util|factor|penal|priorit|visual"
    r"|standard|local|capital|symbol|random|emphas|stabil|final|symmetr|character|author"
    r")is(?:e[drs]?|ing|ation|ations)": "-ize",
    r"analys(?:e|ed|es|ing)": "analyze",
    r"(?:behavi|col|neighb|fav|hon|lab)our(?:s|ed|ing|hood|ite)?": "-or",
    r"grey": "gray",
    r"(?:label|model|cancel|travel|signal)l(?:ed|ing|er)": "a single l",
    r"cent(?:re|res|red)": "center",
    r"licen[c]e[sd]?": "license",
    r"catalogue": "catalog",
    r"artefacts?": "artifact",
    r"whilst|amongst": "while, among",
}


def _pattern(words: dict[str, str]) -> re.Pattern:
    return re.compile(rf"(?<![\w.`/-])(?:{'|'.join(words)})(?![\w`/-]|\.\w|\()", re.IGNORECASE)


_WORDS = _pattern(BANNED | BRITISH)


def mistakes_of(text: str) -> list[str]:
    """The words of a text that are not allowed."""
    return [found[0] for found in _WORDS.finditer(text)]


def python_mistakes(path: Path) -> Iterator[str]:
    """The mistakes in a module's docstrings, comments and strings, as `line: words`."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    module = ast.get_docstring(tree) or ""
    if QUESTION.match(module):
        yield f"1: a module docstring names a thing or starts with a verb: {module.split()[0]}"
    for node in ast.walk(tree):
        # A string without a space is a name or a key.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for line, text in enumerate(node.value.splitlines(), node.lineno):
                for word in mistakes_of(text):
                    yield f"{line}: {word}"
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for word in mistakes_of(token.string):
                yield f"{token.start[0]}: {word}"


def page_mistakes(path: Path) -> Iterator[str]:
    """The mistakes in a page, outside of code, as `line: words`."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            for word in mistakes_of(re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)):
                yield f"{number}: {word}"
