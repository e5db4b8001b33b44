"""Wording of docstrings, comments, messages and pages (see CONTRIBUTING.md, "Style")."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent

PAGES = (
    "*.md",
    "docs/**/*.md",
    "saved_models/*.md",
    "saved_models/*/*.md",
    ".github/*.md",
    "tests/*.md",
)

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


def modules() -> list[Path]:
    return sorted((PROJECT / "keras_attn").rglob("*.py"))


def pages() -> list[Path]:
    return sorted({path for pattern in PAGES for path in PROJECT.glob(pattern)})


def name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("path", modules(), ids=name)
def test_modules_use_plain_words(path):
    assert list(python_mistakes(path)) == []


@pytest.mark.parametrize("path", pages(), ids=name)
def test_pages_use_plain_words(path):
    assert list(page_mistakes(path)) == []


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("Labels of the normalised inputs, grey or coloured.", ["normalised", "grey", "coloured"]),
        ("A share of the tokens, as users are told.", ["share of", "told"]),
        ("Likewise for whoever stands there.", ["Likewise", "whoever", "stands"]),
        ("See `read_labelled_images`, keras_attn/data/labelled_images.py and grey(image).", []),
        ("The standard behavior of tellers is understandable.", []),
    ],
)
def test_words_are_found(text, mistakes):
    assert mistakes_of(text) == mistakes


def test_mistakes_have_their_lines(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""How to count.\n\nIt tells the number."""\n\nx = 1  # of which\n')
    assert list(python_mistakes(module)) == [
        "1: a module docstring names a thing or starts with a verb: How",
        "3: tells",
        "5: of which",
    ]
    page = tmp_path / "page.md"
    page.write_text("Told `as told`\n```\ntold\n```\n[x](told.md)\n")
    assert list(page_mistakes(page)) == ["1: Told"]
