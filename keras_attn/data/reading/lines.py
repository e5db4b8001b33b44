"""Lines of text files, decoded."""

import codecs
import contextlib
import itertools
import re
import unicodedata
from collections.abc import Iterator

from keras_attn.data.reading.content import chunks_of, compression_of
from keras_attn.validation import UserError, require

SKIP_HINT = "Set `skip_bad_lines` (--skip-bad-lines) to leave such lines out."

_UTF8 = "utf-8"
_UTF8_MARK = codecs.BOM_UTF8
# The longer marks first: that of UTF-16 begins that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Files that are no text, by how they begin.
_OTHERS = {
    b"PAR1": "Parquet: name it *.parquet",
    b"PK\x03\x04": "a ZIP archive or an Excel file: save it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel or Word file: save it as CSV",
    b"%PDF-": "PDF",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"\x89HDF": "HDF5: save the table as Parquet or CSV",
    b"SQLite format 3": "a data base: save the table as CSV",
    b"\x93NUMPY": "a NumPy array: save its rows as text",
    b"ARROW1\0\0": "Feather: save it as Parquet",
    b"Obj\x01": "Avro: save it as Parquet",
    b"\xff\xff\xff\xff": "an Arrow stream: save it as Parquet",
    **{
        bytes([0x80, version]): "a pickle of Python: save it as Parquet or CSV"
        for version in (2, 3, 4, 5)
    },
    b"{\\rtf": "RTF: save it as plain text",
    b"$FL2": "an SPSS file: save it as CSV",
    b"<stata_dta>": "a Stata file: save it as CSV",
    b"RDX": "data of R: save it as CSV",
    b"version https://git-lfs": "a pointer of Git LFS: fetch the file (git lfs pull)",
}
# How they begin in lower case, after white space.
_DOCUMENTS = {
    rb"<!doctype html|<html": "a page of HTML",
    rb"<\?xml": "XML: save it as CSV or JSON lines",
    rb"\{\s*\"cells\"\s*:": "a Jupyter notebook: save its texts as a file of their own",
    rb"@relation\s": "ARFF: save it as CSV",
    rb"-- (mysql|mariadb|postgresql) ": "a dump of a data base: save the table as CSV",
    rb"__label__": "lines of fastText: write the text and its label into columns",
}
# Encodings in bytes of ASCII, by what they have at least so many times.
_IN_ASCII = {
    "iso2022_jp": (rb"\x1b\$[@B]", 1),
    "iso2022_kr": (rb"\x1b\$\)C", 1),
    "hz": (rb"~\{[!-}]", 3),
    "utf_7": (rb"\+[A-Za-z0-9+/]{2,}-", 3),
}
_TAR = b"ustar", 257  # and its place in a TAR archive
_SAMPLE_BYTES = 1 << 16
_REPLACEMENT = "\ufffd"
_ENOUGH, _ENOUGH_WORDS = 3, 5  # bytes beyond ASCII to guess from, and words to be sure of it
# What files are found in; of encodings that differ in a few letters only the most frequent one.
# Those of several bytes a letter first: by chance few texts are in one.
_USUAL = ["cp932", "euc_jp", "gb18030", "big5", "cp949"]
_USUAL += ["cp1252", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874"]
_RARE = ["cp1250", "iso8859_2", "cp1254", "cp1257", "cp866", "cp850", "mac_roman"]
_ORDER = ["cp1252", *_USUAL, *_RARE]
_SHOWN, _SHOWN_UNSURE, _ALIKE = 3, 8, 3
_COMPARED = 200  # places where the readings of encodings are compared
_EXCERPT_LENGTH = 40
_EMPTY = re.compile("[\\s\\u200b-\\u200f\\u2060\\ufeff]*")


class BadLine(str):
    """A line that cannot be decoded, with question marks in place of what is wrong.

    Attributes:
        guess: Sentences about the encoding that it seems to be in, or nothing.
    """

    guess = ""


def mistake_of(line: str) -> str | None:
    """What is wrong with a line, or `None`."""
    if not isinstance(line, BadLine):
        return None
    return f"found a character that cannot be decoded.{line.guess}".removesuffix(".")


def iterate_lines(
    path: str, skip_bad_lines: bool | None = None, encoding: str | None = None
) -> Iterator[str]:
    r"""Yields the lines of a file without their line ends.

    Lines end with `\n` or `\r\n`; all other characters belong to the text.

    Args:
        path: The file, plain or compressed.
        skip_bad_lines: Whether a line that cannot be decoded is a `BadLine` instead of an error;
            `None` where users cannot choose.
        encoding: The encoding; by default UTF-8, with or without a byte order mark.

    Raises:
        UserError: See `chunks_of`; the file is empty, is not in this encoding, or its lines end
            with CR alone.
    """
    number, rest = 0, b""
    guesses: list[str] = []
    for chunk in _utf8_chunks(path, encoding):
        block, end, rest = (rest + chunk).rpartition(b"\n")
        if end:
            yield from _lines_of(block, path, number, skip_bad_lines, guesses)
            number += block.count(b"\n") + 1
        require(
            number > 0 or b"\r" not in rest[:-1],
            f"{path}: lines must end with LF or CRLF, found CR alone (tr '\\r' '\\n' converts it).",
        )
    if rest:
        yield from _lines_of(rest, path, number, skip_bad_lines, guesses)
    elif not number:
        raise UserError(f"{path}: the file is empty.")


def check_encoding(encoding: str | None) -> None:
    """Raises `UserError` unless Python knows the text encoding."""
    known = False
    with contextlib.suppress(LookupError, TypeError, ValueError):
        known = encoding is None or codecs.lookup(encoding)._is_text_encoding
    require(known, "`encoding` must be a text encoding, such as cp1252.", encoding=encoding)


def is_empty(text: str) -> bool:
    """Whether a text is nothing but white space and marks without a width."""
    return _EMPTY.fullmatch(text) is not None


def excerpt(line: str) -> str:
    """The beginning of a line, for a message."""
    shown = line if len(line) <= _EXCERPT_LENGTH else line[:_EXCERPT_LENGTH] + "…"
    return repr(shown)


def _utf8_chunks(path: str, encoding: str | None) -> Iterator[bytes]:
    chunks = chunks_of(path)
    check_encoding(encoding)
    if encoding is not None and codecs.lookup(encoding).name not in (_UTF8, "utf-8-sig"):
        yield from _reencoded(path, chunks, encoding)
        return
    first = next(chunks, b"")
    kind = _other_kind(first)
    require(kind is None, f"{path}: expected text, found {kind}.")
    for mark, name in _MARKS:
        if first.startswith(mark):
            raise UserError(
                f"{path}: expected UTF-8, found the byte order mark of {name.upper()}. "
                f"{_encoding_hint(name)}"
            )
    zeros = first[::2].count(b"\0"), first[1::2].count(b"\0")
    if len(first) < sum(zeros) * 5 < 4 * len(first) and max(zeros) > 9 * min(zeros):
        name = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
        raise UserError(
            f"{path}: expected UTF-8, found many zero bytes, as {name.upper()} has. "
            f"{_encoding_hint(name)}"
        )
    if encoding is None and (found := _encoding_in_ascii(first)):
        raise UserError(
            f"{path}: expected UTF-8, found what {found} writes in place of letters. "
            f"{_encoding_hint(found)} --encoding {_UTF8} takes it as it is."
        )
    yield first.removeprefix(_UTF8_MARK)
    yield from chunks


def _encoding_in_ascii(first: bytes) -> str | None:
    """The encoding that writes all letters as ASCII and that text is in, or `None`."""
    sample = first[:_SAMPLE_BYTES]
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    if not sample.isascii():
        return None
    for name, (pattern, least) in _IN_ASCII.items():
        # Decoding is strict: a plus or a tilde of another kind is an error.
        with contextlib.suppress(UnicodeDecodeError):
            if len(re.findall(pattern, sample)) >= least and not sample.decode(name).isascii():
                return name
    return None


def _other_kind(first: bytes) -> str | None:
    """What a file is that is no text, by its first bytes; `None` for text."""
    begin = first[:64].removeprefix(_UTF8_MARK).lstrip().lower()
    for pattern, kind in _DOCUMENTS.items():
        if re.match(pattern, begin):
            return kind
    magic, place = _TAR
    if first.startswith(magic, place):
        return "a TAR archive: unpack it"
    if compression_of(first):
        return "a file packed twice"
    return next((kind for begin, kind in _OTHERS.items() if first.startswith(begin)), None)


def _reencoded(path: str, chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Turns the pieces of a file into UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    is_first = True
    try:
        for chunk in chunks:
            require(
                not (is_first and _is_utf8(chunk)),
                f"{path}: the file is UTF-8, which needs no `encoding`. If other files need it, "
                f"save them as UTF-8 first, such as by iconv -f {encoding} -t UTF-8 OLD > NEW.",
                encoding=encoding,
            )
            text = decoder.decode(chunk)
            yield (text.removeprefix("\ufeff") if is_first else text).encode(_UTF8)
            is_first = is_first and not text
        yield decoder.decode(b"", final=True).encode(_UTF8)
    except UnicodeError as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{path}: the file is not in the encoding {encoding} ({reason}).") from None


def _is_utf8(begin: bytes) -> bool:
    """Whether bytes are UTF-8, and not ASCII alone."""
    try:
        text = codecs.getincrementaldecoder(_UTF8)().decode(begin)
    except UnicodeDecodeError:
        return False
    return sum(character > "\x7f" for character in text[:_SAMPLE_BYTES]) >= _ENOUGH


def _lines_of(
    block: bytes, path: str, before: int, skip_bad_lines: bool | None, guesses: list[str]
) -> list[str]:
    """The lines of a block that follows `before` lines; a guess from the first wrong one stays."""
    try:
        lines = block.decode(_UTF8).split("\n")
    except UnicodeDecodeError as error:
        if not skip_bad_lines:
            number = before + block.count(b"\n", 0, error.start) + 1
            column = error.start - block.rfind(b"\n", 0, error.start)
            found = f"0x{block[error.start]:02x} ({error.reason})"
            message = (
                f"{path}, line {number}, byte {column}: expected UTF-8, found the byte {found}."
            )
            if skip_bad_lines is not None:
                guess = _guess(block, error.start)  # where it is the encoding, all lines have it
                message += guess if "--encoding" in guess else f"{guess} {SKIP_HINT}"
            raise UserError(message) from None
        if not guesses:
            guesses.append(_guess(block, error.start))
        return [_decoded(line.removesuffix(b"\r"), guesses[0]) for line in block.split(b"\n")]
    return [line.removesuffix("\r") for line in lines] if b"\r" in block else lines


def _decoded(line: bytes, guess: str) -> str:
    try:
        return line.decode(_UTF8)
    except UnicodeDecodeError:
        bad = BadLine(line.decode(_UTF8, "replace"))
        bad.guess = guess
        return bad


def _guess(block: bytes, place: int) -> str:
    """Sentences about the encoding that bytes around a place seem to be in; or nothing."""
    begin = max(0, block.rfind(b"\n", 0, max(place - _SAMPLE_BYTES // 2, 0)) + 1)
    sample = block[begin : begin + _SAMPLE_BYTES]
    if sum(byte > 127 for byte in sample) < _ENOUGH:
        return ""
    # By lines: a few letters of two bytes are UTF-8 by chance.
    are_utf8 = [_decodes(line, _UTF8) for line in sample.split(b"\n") if not line.isascii()]
    if sum(are_utf8) > len(are_utf8) / 3:
        return " Other lines are UTF-8: the file has several encodings."
    names, is_sure = _candidates(sample)
    if not names:
        return ""
    # The words that most encodings read differently, or else the first wrong ones.
    others = itertools.islice(re.finditer(rb"[^\x00-\x7f][\x00-\x7f]", sample), _COMPARED)
    words = [_words_at(block, at) for at in (place, *(begin + one.start() for one in others))]
    word = max(words, key=lambda word: len({_read(word, name) for name in names}))
    readings: dict[str, list[str]] = {}  # encodings by what the words are in them
    for name in sorted(names, key=_ORDER.index):
        readings.setdefault(_read(word, name), []).append(name)
    likely = dict.fromkeys(_read(word, name) for name in names)
    found = [one for one in likely if one.isprintable()] or list(likely)
    most = _SHOWN if is_sure else _SHOWN_UNSURE
    shown = [f"{' or '.join(readings[one][:_ALIKE])} ({one!r})" for one in found[:most]]
    hint = "Set `encoding` (--encoding NAME) to the one in which that reads well."
    if len(found) == 1 == len(readings[found[0]]):
        hint = _encoding_hint(readings[found[0]][0])
    return f" The file may be in {' or '.join(shown)}. {hint}"


def _candidates(sample: bytes) -> tuple[list[str], bool]:
    """Encodings that bytes may be in, likely ones first, and whether their words are known."""
    import charset_normalizer

    usual = list(charset_normalizer.from_bytes(sample, cp_isolation=_USUAL))
    # They are like usual ones but for a few letters, and are shown beside them.
    rare = list(charset_normalizer.from_bytes(sample, cp_isolation=_RARE))
    likely = usual[:1] + rare
    # The words are those of a language, and enough of them.
    words = {word for word in sample.split() if not word.isascii()}
    is_sure = len(words) >= _ENOUGH_WORDS and any(one.coherence > 0 for one in likely)
    names = [one.encoding for one in (likely if is_sure else usual + rare)]
    if not is_sure:
        lines = sample[: sample.rfind(b"\n") + 1]
        names += [name for name in _USUAL + _RARE if _decodes(lines, name)]
        names.sort(key=lambda name: -_letters(lines, name))
    return list(dict.fromkeys(names)), is_sure


def _decodes(text: bytes, encoding: str) -> bool:
    """Whether a text is in an encoding, as far as its letters go."""
    return bool(text) and _REPLACEMENT not in text.decode(encoding, "replace")


def _letters(text: bytes, encoding: str) -> float:
    """How much of what is beyond ASCII is letters, quotes and dashes, from 0 to 1."""
    kinds = [
        unicodedata.category(character)
        for character in text.decode(encoding, "replace")
        if character > "\x7f"
    ]
    known = sum(kind[0] in "LM" or kind in ("Pi", "Pf", "Pd") for kind in kinds)
    return round(known / max(len(kinds), 1), 1)


def _words_at(block: bytes, place: int) -> bytes:
    """The words around a byte."""
    begin = max(block.rfind(b"\n", 0, place) + 1, block.rfind(b" ", 0, place) + 1)
    return re.split(rb"[\n\t]", block[begin : begin + _EXCERPT_LENGTH])[0]


def _read(words: bytes, encoding: str) -> str:
    return words.decode(encoding, "replace").replace("\xa0", " ").strip()


def _encoding_hint(name: str) -> str:
    return f"Set `encoding` (--encoding {name}) to read it."
