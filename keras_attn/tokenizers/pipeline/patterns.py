r"""Regular expressions of tokenizers, parsed so that sets of characters can be spelled anew.

Only what decides the same everywhere is parsed: characters, sets, groups, alternatives, repetition
(greedy or lazy), and `(?!\S)`, which GPT-2's pattern has after its spaces.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np

from keras_attn.tokenizers.code_points import code_points, has_code_points
from keras_attn.validation import UserError

ALL = 0x110000
_NAMES = {"L": "letters", "N": "numbers"}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_SETS = {"s": "spaces", "d": r"\p{Nd}", "w": r"\w"}
_OTHER_CASES = {"s": "\u017f", "k": "\u212a"}
# Pairs of letters that are also one character, which folding of cases finds.
_LIGATURES = re.compile("ss|st|ff|fi|fl", re.IGNORECASE)


class Characters(NamedTuple):
    """One character of a set.

    Attributes:
        inside: Which code points are in it, (1114112,) bool.
    """

    inside: np.ndarray


class InOrder(NamedTuple):
    """Parts that follow each other."""

    parts: tuple["Pattern", ...]


class OneOf(NamedTuple):
    """Alternatives; the first that fits is taken."""

    options: tuple["Pattern", ...]


class Repeated(NamedTuple):
    """A part several times; `most` is None without a limit."""

    part: "Pattern"
    least: int
    most: int | None
    lazy: bool


class NotBefore(NamedTuple):
    """A place that no character of a set follows."""

    inside: np.ndarray


Pattern = Characters | InOrder | OneOf | Repeated | NotBefore


def parse_pattern(pattern: str) -> Pattern:
    """Parses a regular expression.

    Args:
        pattern: The expression.

    Raises:
        UserError: It is malformed, or uses something that is not supported.
    """
    parser = _Parser(pattern)
    parsed = parser.alternatives()
    parser.require(parser.at_end())
    return parsed


def literal(text: str) -> Pattern:
    """Returns the pattern of a text itself."""
    return InOrder(tuple(Characters(_one(character)) for character in text))


def sets_of(pattern: Pattern) -> list[np.ndarray]:
    """Returns the sets of characters in a pattern."""
    if isinstance(pattern, Characters | NotBefore):
        return [pattern.inside]
    if isinstance(pattern, Repeated):
        return sets_of(pattern.part)
    parts = pattern.parts if isinstance(pattern, InOrder) else pattern.options
    return [inside for part in parts for inside in sets_of(part)]


def written(pattern: Pattern, spell: Callable[[np.ndarray], str]) -> str:
    """Writes a pattern for RE2.

    Args:
        pattern: The pattern, without `NotBefore`.
        spell: Writes a set of characters.

    Raises:
        UserError: The pattern contains `NotBefore`.
    """
    if isinstance(pattern, Characters):
        return spell(pattern.inside)
    if isinstance(pattern, InOrder):
        return "".join(written(part, spell) for part in pattern.parts)
    if isinstance(pattern, OneOf):
        return f"(?:{'|'.join(written(option, spell) for option in pattern.options)})"
    if isinstance(pattern, NotBefore):
        raise UserError(r"`(?!\S)` is only supported in `\s+(?!\S)|\s+`.")
    most = "" if pattern.most is None else pattern.most
    lazy = "?" if pattern.lazy else ""
    return f"(?:{written(pattern.part, spell)}){{{pattern.least},{most}}}{lazy}"


def spelled(inside: np.ndarray) -> str:
    """Spells a set of characters by their code points."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8)))
    pairs = edges.reshape(-1, 2).tolist()
    ranges = "".join(rf"\x{{{first:X}}}-\x{{{last - 1:X}}}" for first, last in pairs)
    return f"[{ranges}]" if ranges else r"[^\x{0}-\x{10FFFF}]"


def _one(character: str) -> np.ndarray:
    inside = np.zeros(ALL, bool)
    inside[ord(character)] = True
    return inside


class _Parser:
    """A recursive descent over the text of a pattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.any_case = False

    def at_end(self) -> bool:
        return self.place == len(self.text)

    def require(self, condition: bool) -> None:
        if not condition:
            self.refuse()

    def refuse(self) -> NoReturn:
        raise UserError(
            "A regular expression is malformed or not supported at its character "
            f"{self.place + 1}. Received: {self.text!r}."
        )

    def skipped(self, text: str) -> bool:
        """Goes past a text, if it is next."""
        found = self.text.startswith(text, self.place)
        self.place += len(text) * found
        return found

    def next(self) -> str:
        self.require(not self.at_end())
        self.place += 1
        return self.text[self.place - 1]

    def alternatives(self) -> Pattern:
        options = [self.in_order()]
        while self.skipped("|"):
            options.append(self.in_order())
        return options[0] if len(options) == 1 else OneOf(tuple(options))

    def in_order(self) -> Pattern:
        parts = []
        while not self.at_end() and self.text[self.place] not in "|)":
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else InOrder(tuple(parts))

    def atom(self) -> Pattern:
        if self.skipped("("):
            return self.group()
        if self.skipped("["):
            return Characters(self.bracket())
        character = self.next()
        if character == ".":
            return Characters(np.ones(ALL, bool))
        if character == "\\":
            return Characters(self.escape())
        self.place -= 1
        self.require(character not in "*+?{}^$)")
        self.place += 1
        return Characters(self.cased(character))

    def group(self) -> Pattern:
        if self.skipped("?!"):
            inner = self.alternatives()
            if isinstance(inner, Characters) and self.skipped(")"):
                return NotBefore(inner.inside)
            self.refuse()
        outer = self.any_case
        if self.skipped("?i:"):
            self.any_case = True
            end = self.text.find(")", self.place)
            self.require(not _LIGATURES.search(self.text, self.place, max(end, self.place)))
        else:
            self.require(self.skipped("?:") or not self.text.startswith("?", self.place))
        inner = self.alternatives()
        self.require(self.skipped(")"))
        self.any_case = outer
        return inner

    def repeated(self, part: Pattern) -> Pattern:
        if self.skipped("*"):
            least, most = 0, None
        elif self.skipped("+"):
            least, most = 1, None
        elif self.skipped("?"):
            least, most = 0, 1
        else:
            counts = re.compile(r"\{(\d+)(,(\d*))?\}").match(self.text, self.place)
            if counts is None:
                return part
            self.place = counts.end()
            least = int(counts[1])
            most = int(counts[3]) if counts[3] else None if counts[2] else least
            self.require(max(least, most or 0) <= 1000)  # RE2's limit
        lazy = self.skipped("?")
        self.require(not isinstance(part, NotBefore))
        self.require(self.at_end() or self.text[self.place] not in "*+?{")  # possessive
        return Repeated(part, least, most, lazy)

    def escape(self) -> np.ndarray:
        """The set that a backslash introduces."""
        character = self.next()
        if character in "pP":
            name = re.compile(r"\{(\^?)(\w+)\}").match(self.text, self.place)
            if name is None:
                self.refuse()
            key = _NAMES.get(name[2], f"\\p{{{name[2]}}}")
            self.require(has_code_points(key))
            self.place = name.end()
            return code_points(key) ^ ((character == "P") != bool(name[1]))
        if character.lower() in _SETS:
            return code_points(_SETS[character.lower()]) ^ character.isupper()
        digits = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})").match(
            self.text, self.place - 1
        )
        if digits:
            self.place = digits.end()
            number = int(digits[1] or digits[2] or digits[3], 16)
            self.require(number < ALL)
            return self.cased(chr(number))
        self.require(character in _ESCAPES or not (character.isalnum() and character.isascii()))
        return self.cased(_ESCAPES.get(character, character))

    def cased(self, character: str) -> np.ndarray:
        """The set of one character, in both cases where cases do not matter."""
        inside = _one(character)
        if self.any_case:
            self.require(character.isascii() or character.lower() == character.upper())
            low = character.lower()
            for other in (low, low.upper(), _OTHER_CASES.get(low, low)):
                inside[ord(other)] = True
        return inside

    def bracket(self) -> np.ndarray:
        inverted = self.skipped("^")
        inside = np.zeros(ALL, bool)
        empty = True
        while empty or not self.text.startswith("]", self.place):
            self.require(not self.text.startswith(("[", "&&"), self.place))
            first = self.one_of_bracket()
            if self.text.startswith("-", self.place) and self.text[self.place + 1 :][:1] != "]":
                self.place += 1
                last = self.one_of_bracket()
                self.require(first.sum() == last.sum() == 1)
                inside[first.argmax() : last.argmax() + 1] = True
            inside |= first
            empty = False
        self.place += 1
        return inside ^ inverted

    def one_of_bracket(self) -> np.ndarray:
        character = self.next()
        return self.escape() if character == "\\" else self.cased(character)
