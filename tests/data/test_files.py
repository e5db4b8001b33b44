import gzip

import pytest

from keras_attn.data import Pairs, read_pairs, read_texts
from keras_attn.data.reading.lines import BadLine, iterate_lines
from keras_attn.validation import UserError
from tests.refusals import message_of


def written(folder, content, name="pairs.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_tab_separated(tmp_path):
    path = written(tmp_path, "a b\tA B\nc\tC\na b\tA\n")
    assert read_pairs([path]) == Pairs(["a b", "c", "a b"], ["A B", "C", "A"], str(path), 0)
    assert read_pairs(path) == read_pairs([path]) == read_pairs(str(path))
    assert len(read_pairs(path)) == 3


def test_aligned(tmp_path):
    sources = written(tmp_path, "eins\nzwei\tdrei", "a.de")
    targets = written(tmp_path, "one\ntwo three\n", "a.en")
    pairs = read_pairs([sources, str(targets)])
    assert pairs == Pairs(["eins", "zwei\tdrei"], ["one", "two three"], f"{sources} + {targets}", 0)


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a\tb\r\nc\td\r\n", [("a", "b"), ("c", "d")]),
        (b"a\tb\nc\td\r\n", [("a", "b"), ("c", "d")]),
        (b"\xef\xbb\xbfa\tb\n", [("a", "b")]),
        (b"a\tb\n\xef\xbb\xbfc\td\n", [("a", "b"), ("\ufeffc", "d")]),
        (b"a\tb", [("a", "b")]),
        (b"a\r\tb\rc\n", [("a\r", "b\rc")]),
        (b" a \t b \n", [(" a ", " b ")]),
        ('"a\t"b\n', [('"a', '"b')]),
        ("a\1\t日本語\n", [("a\1", "日本語")]),
        (
            "a\u2028b\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2029i\tz\u2028\n",
            [("a\u2028b\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2029i", "z\u2028")],
        ),
    ],
)
def test_only_line_feeds_end_lines(tmp_path, content, rows):
    pairs = read_pairs(written(tmp_path, content))
    assert list(zip(pairs.sources, pairs.targets, strict=True)) == rows


@pytest.mark.parametrize("encoding", [None, "cp1252"])
def test_lines_that_end_with_cr_alone_are_refused(tmp_path, encoding):
    path = written(tmp_path, b"a\tA\rb\tB\r")
    with pytest.raises(UserError, match="found CR alone"):
        list(iterate_lines(str(path), encoding=encoding))


@pytest.mark.parametrize("name", ["pairs.tsv.gz", "pairs.tsv"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_gzip_is_told_by_content(tmp_path, name, mark):
    # Two members, as `cat a.gz b.gz` makes them.
    packed = gzip.compress(mark + "ä\tA\n".encode()) + gzip.compress(b"b\tB\r\n")
    assert read_pairs(written(tmp_path, packed, name)).sources == ["ä", "b"]
    assert read_pairs(written(tmp_path, mark + "ä\tA\n".encode(), name)).sources == ["ä"]


BAD_LINES = [
    (b"a\tb\ncde\n", "line 2, column 4", "found no tab in 'cde'"),
    (b"a\tb\n\nc\td\n", "line 2, column 1", "found no tab in ''"),
    (b"\n", "line 1, column 1", "found no tab in ''"),
    (b"a\tb\nc\td\n\xc3\xa9\tf\tgh\ti\n", "line 3, column 4", r"found 3 tabs in 'é\tf\tgh\ti'"),
    (b"\tb\n", "line 1, column 1", r"found an empty source in '\tb'"),
    (b"  \tb\n", "line 1, column 1", r"found an empty source in '  \tb'"),
    (b"a\tb\r\nabc\t\r\n", "line 2, column 5", r"found an empty target in 'abc\t'"),
    (b"abc\t \xe2\x80\xa8\n", "line 1, column 5", r"found an empty target in 'abc\t \u2028'"),
    (b"ab\tc\0d\n", "line 1, column 4", r"found a NUL character in 'ab\tc\x00d'"),
    (b"x" * 47 + b"\n", "line 1, column 48", f"found no tab in '{'x' * 40}…'"),
]


@pytest.mark.parametrize(("content", "place", "found"), BAD_LINES)
def test_bad_lines_of_tab_separated(tmp_path, content, place, found):
    path = written(tmp_path, content + b"c\td\n")
    assert message_of(read_pairs, path) == (
        f"{path}, {place}: expected source<TAB>target, {found}. "
        "Set `skip_bad_lines` (--skip-bad-lines) to leave such lines out."
    )


@pytest.mark.parametrize(
    ("content", "line", "column", "byte"),
    [
        (b"a\tb\n\xc3\xa9\xff\tc\n", 2, 3, "0xff"),
        (b"\xff\xf1a", 1, 1, "0xff"),
        (b"\xef\xbb\xbfa\tb\xe9", 1, 4, "0xe9"),
        (b"a\tb\nc\td\ne\tf\xc0\xaf\n", 3, 4, "0xc0"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_invalid_utf8(tmp_path, content, line, column, byte, packed):
    path = written(tmp_path, gzip.compress(content) if packed else content)
    message = message_of(read_pairs, path)
    assert message.startswith(f"{path}, line {line}, byte {column}: expected UTF-8, found ")
    assert f"the byte {byte} (" in message
    assert f"line {line}, byte {column}:" in message_of(read_pairs, [path, path])
    assert f"line {line}, byte {column}:" in message_of(read_texts, path)


def test_bad_lines_of_aligned_files(tmp_path):
    full = written(tmp_path, "a\nb\nc\n", "full")
    gap = written(tmp_path, "a\nb\n \n", "gap")
    for paths in ([full, gap], [gap, full]):
        assert message_of(read_pairs, paths) == (
            f"{gap}, line 3, column 1: expected a text, found an empty line. "
            "Set `skip_bad_lines` (--skip-bad-lines) to leave such lines out."
        )


@pytest.mark.parametrize("skip_bad_lines", [False, True])
def test_unequal_length(tmp_path, skip_bad_lines):
    longer = written(tmp_path, "a\n" * 1234, "longer")
    shorter = written(tmp_path, "a\n" * 1231, "shorter")
    message = message_of(read_pairs, [longer, shorter], skip_bad_lines=skip_bad_lines)
    assert message == (
        "Aligned files must have the same number of lines: "
        f"{longer} has 1,234, {shorter} has 1,231."
    )


def test_skipping_counts(tmp_path):
    content = b"a\tb\nc\nd\te\tf\n\tg\nh\t\n\xff\ti\n\nj\tk\r\n"
    pairs = read_pairs(written(tmp_path, content), skip_bad_lines=True)
    assert (pairs.sources, pairs.targets, pairs.skipped) == (["a", "j"], ["b", "k"], 6)
    sources = written(tmp_path, b"a\n\nc\n\xff\ne\r\n", "sources")
    targets = written(tmp_path, b"A\nB\n\xff\n\xff\nE\n", "targets")
    pairs = read_pairs([sources, targets], skip_bad_lines=True)
    assert (pairs.sources, pairs.targets, pairs.skipped) == (["a", "e"], ["A", "E"], 3)


def test_nothing_left(tmp_path):
    path = written(tmp_path, "a\nb\nc\n")
    assert message_of(read_pairs, path, skip_bad_lines=True) == (
        f"{path}: nothing is left because all 3 lines are malformed. The first one: {path}, "
        "line 1, column 2: expected source<TAB>target, found no tab in 'a'. Is the file of another "
        "form (name it *.csv, *.jsonl or *.conll), or are other columns meant (--columns)?"
    )


@pytest.mark.parametrize(
    "content", [b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)], ids=["empty", "mark", "packed"]
)
def test_empty_file(tmp_path, content):
    path = written(tmp_path, content)
    for read in (read_pairs, read_texts):
        assert message_of(read, path) == f"{path}: the file is empty."


def test_files_that_cannot_be_read(tmp_path):
    file = written(tmp_path, "a\tb\n")
    absent = tmp_path / "absent.tsv"
    assert message_of(read_pairs, absent) == f"{absent}: no such file."
    assert message_of(read_pairs, [file, absent]) == f"{absent}: no such file."
    assert message_of(read_texts, tmp_path) == (
        f"{tmp_path}: expected a text file, found a directory."
    )
    beyond = file / "b"
    assert message_of(read_pairs, beyond) == f"{beyond}: cannot be read (Not a directory)."


@pytest.mark.parametrize("damage", ["cut", "cut in the header", "flipped", "trailing"])
def test_damaged_gzip(tmp_path, damage):
    packed = gzip.compress("".join(f"{row}\t{row * row}\n" for row in range(997)).encode())
    middle = len(packed) // 2
    content = {
        "cut": packed[:-100],
        "cut in the header": packed[:5],
        "flipped": packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :],
        "trailing": packed + b"rubbish",
    }[damage]
    path = written(tmp_path, content)
    for skip_bad_lines in (False, True):
        message = message_of(read_pairs, path, skip_bad_lines=skip_bad_lines)
        assert message.startswith(f"{path}: damaged or truncated gzip file (")


def test_no_files():
    assert message_of(read_pairs, []) == (
        "Pairs are read from at least one file. Received: paths=[]."
    )


def test_texts(tmp_path):
    path = written(tmp_path, gzip.compress("a\u2028b\tc\r\n\r\nd".encode()), "texts")
    assert read_texts(path, allow_empty=True) == ["a\u2028b\tc", "", "d"]
    assert message_of(read_texts, path) == (
        f"{path}, line 2, column 1: expected a text, found an empty line."
    )


def test_pairs_are_aligned():
    message = message_of(Pairs, ["a", "b"], ["c"])
    assert message == (
        "`sources` and `targets` must have the same length. Received: sources=2, targets=1."
    )


def test_multi30k(shared_data):
    paths = [shared_data / "multi30k" / f"train.{language}.gz" for language in ("de", "en")]
    pairs = read_pairs(paths)
    assert len(pairs) == 29_000
    assert pairs.targets[0] == "Two young, White males are outside near many bushes."
    assert pairs.sources[0] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."


@pytest.mark.parametrize("size", [3, 7, 64])
def test_lines_do_not_depend_on_the_pieces_that_are_read(tmp_path, monkeypatch, size):
    lines = ["é\ta", "bb\tçc\u2028", "", "x\ty\tz", "long " * 9 + "\tend"]
    path = tmp_path / "lines.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\n\xff\tbad\nlast\tone")
    monkeypatch.setattr("keras_attn.data.reading.content._CHUNK_BYTES", size)
    found = list(iterate_lines(str(path), skip_bad_lines=True))
    assert found == [*lines, "\ufffd\tbad", "last\tone"]
    assert [type(line) for line in found].index(BadLine) == len(lines)
    with pytest.raises(UserError, match="lines.tsv, line 6, byte 1: expected UTF-8, found .* 0xff"):
        list(iterate_lines(str(path), skip_bad_lines=False))


def test_what_cannot_be_skipped_is_not_offered_to_be(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"a\n\xff\n")
    assert message_of(read_texts, path).endswith("found the byte 0xff (invalid start byte).")
    assert "--skip-bad-lines" in message_of(read_pairs, [path, path])
