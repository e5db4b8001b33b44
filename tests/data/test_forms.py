"""Files of all forms, compressions and encodings give the same examples, or one clear line."""

import bz2
import csv
import gzip
import io
import json
import lzma

import pyarrow
import pyarrow.parquet
import pytest

from keras_attn.data import has_scores, read_pairs, read_scored_pairs, read_tagged_texts
from keras_attn.data.reading.lines import iterate_lines
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

ROLES = ("text", "label")
ROWS = [("Good, but \"long\"; see 'it'", "pos"), ("Ünï|cödé 日本", "neg"), ("7", "pos")]
BROKEN = [("two\nlines\twith a tab", "pos"), *ROWS]


def as_csv(rows, header=("text", "label"), **options):
    file = io.StringIO()
    csv.writer(file, **options).writerows([header, *rows] if header else rows)
    return file.getvalue().encode()


def as_json(rows):
    return "".join(json.dumps({"id": 1, "label": b, "text": a}) + "\n" for a, b in rows).encode()


def as_parquet(rows):
    file = io.BytesIO()
    columns = {"n": range(len(rows)), "label": [b for _, b in rows], "text": [a for a, _ in rows]}
    pyarrow.parquet.write_table(pyarrow.table({k: list(v) for k, v in columns.items()}), file)
    return file.getvalue()


def as_tsv(rows, header=None):
    lines = ["\t".join(row) for row in ([header] if header else []) + rows]
    return ("\n".join(lines) + "\n").encode()


def zstd(data):
    file = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(file, "zstd") as stream:
        stream.write(data)
    return file.getvalue().to_pybytes()


FORMS = {
    "a.tsv": (as_tsv(ROWS), ROWS),
    "a": (as_tsv(ROWS), ROWS),
    "header.tsv": (as_tsv(ROWS, ("Text", "label")), ROWS),
    "quoted.tsv": (as_csv(BROKEN[1:], None, delimiter="\t", quoting=csv.QUOTE_ALL), ROWS),
    "a.csv": (as_csv(BROKEN), BROKEN),
    "crlf.csv": (as_csv(BROKEN, lineterminator="\r\n"), BROKEN),
    "semicolon.csv": (as_csv(BROKEN, delimiter=";"), BROKEN),
    "swapped.csv": (as_csv([(b, "x", a) for a, b in BROKEN], ("label", "id", "text")), BROKEN),
    "a.jsonl": (as_json(BROKEN), BROKEN),
    "a.ndjson": (as_json(BROKEN) + b"\n\n", BROKEN),
    "lines.json": (as_json(BROKEN), BROKEN),
    "list.json": (
        json.dumps([{"text": a, "label": b} for a, b in BROKEN], indent=1).encode(),
        BROKEN,
    ),
    "without_suffix": (as_json(BROKEN), BROKEN),
    "a.parquet": (as_parquet(BROKEN), BROKEN),
}
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


def rows_of(pairs):
    return list(zip(pairs.sources, pairs.targets, strict=True))


# Parquet is compressed inside.
@pytest.mark.parametrize(
    ("name", "packed"),
    [(name, packed) for name in FORMS for packed in PACKED if not (packed and "parquet" in name)],
)
def test_forms(name, packed, tmp_path):
    content, expected = FORMS[name]
    path = tmp_path / f"{name}{packed}"
    path.write_bytes(PACKED[packed](content))
    assert rows_of(read_pairs(path, roles=ROLES)) == expected


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected"),
    [
        ("a.csv", b"id,review,stars\n1,x,5\n2,y,1\n", "review stars", [("x", "5"), ("y", "1")]),
        ("a.csv", b"1,x,5\n2,y,1\n", "2 3", [("x", "5"), ("y", "1")]),
        ("a.csv", b"id,text,label\n1,x,5\n", "2 3", [("x", "5")]),
        ("a.tsv", b"a\tb\tc\nd\te\tf\n", "3 1", [("c", "a"), ("f", "d")]),
        ("a.tsv", b"n\tr\ts\n1\tx\t5\n", "r s", [("x", "5")]),
        ("a.csv", b"Titel,Urteil\nx,5\n", "Titel Urteil", [("x", "5")]),
        ("a.csv", b"text,label\nx,5\n,\n,\n", "text label", [("x", "5")]),
        ("a.csv", b"sep=|\na,b|c\nx|5\n", "1 2", [("a,b", "c"), ("x", "5")]),
        ("a.csv", b"text,label\nx, 5 \n", "text label", [("x", "5")]),
        ("a.jsonl", b'{"r": "x", "s": 5, "t": null}\n', "r s", [("x", "5")]),
        ("a.jsonl", b'{"r": ["x", "y"], "s": true}\n', "r s", [("x y", "True")]),
        ("a.csv", b'"r", "s"\n"x, y", "5"\n', "r s", [("x, y", "5")]),
        ("a.csv", b"0,1,2\n7,x,5\n", "2 3", [("x", "5")]),
        ("a.csv", b'{"r": "x", "s": 5}\n', "r s", [("x", "5")]),
        ("a.tsv", b'"x ""y""\t"\t5\nz\t4\n', "1 2", [('x "y"\t', "5"), ("z", "4")]),
        ("a.tsv", b'"x\ny"\t5\nz\t4\n', "1 2", [("x\ny", "5"), ("z", "4")]),
        # The first hundred lines end within a row.
        ("a.tsv", b"r\ts\n" + 70 * b'"x\ny"\t5\n', "r s", 70 * [("x\ny", "5")]),
        ("a.tsv", b'z\t4\n"x\t5\n', "1 2", [("z", "4"), ('"x', "5")]),
        ("a.tsv", b"~{a~} +1-800\t+x-\n", "1 2", [("~{a~} +1-800", "+x-")]),
        ("a.tsv", b'"x" y\t5\n"z"\t4\n', "1 2", [('"x" y', "5"), ('"z"', "4")]),
        ("a.jsonl", b'{"a": {"r": "x", "b": {"s": 5}}}\n', "a.r a.b.s", [("x", "5")]),
    ],
)
def test_columns(name, content, columns, expected, tmp_path):
    (tmp_path / name).write_bytes(content)
    columns = dict(zip(ROLES, columns.split(), strict=True))
    assert rows_of(read_pairs(tmp_path / name, columns=columns, roles=ROLES)) == expected


MISTAKES = [
    ("a.csv", b"good,pos\nbad,neg\n", None, "is the first line, 'good', 'pos', an example or the"),
    ("a.csv", b"text,label\nx,5\n", "text stars", "a.csv has no column 'stars'; it has 'text', 'l"),
    ("a.csv", b"id,a,b\n1,x,5\n", None, "is the first line, 'id', 'a', 'b', an example or"),
    ("a.csv", b"id,text,b\n1,x,5\n", None, "none of the columns 'id', 'text', 'b' has a usual na"),
    (
        "a.jsonl",
        b'{"a": 1, "text": 2, "b": 3}\n',
        None,
        "of the columns 'a', 'text', 'b' is the lab",
    ),
    ("a.csv", b"text,label\nx,5,6\n", None, "line 2: expected 2 fields .* found 3 in 'x,5,6'"),
    ("a.csv", b"text,label\n,\nx,5\n", None, "line 2, column 1: expected a text, found an empty"),
    ("a.csv", b"Sales\ntext,label\nx,5\n", None, "each of text, label; the first line has 'Sales'"),
    ("a.csv", b'text,label\n"x,5\ny,4\n', None, "line 2: malformed CSV: .* no quote ends it"),
    ("a.csv", b'text,label\n"x"y,5\n', None, "line 2: malformed CSV: text after the quote"),
    ("a.csv", b"text\nx\n", None, "a column is needed for each of text, label; the first line has"),
    ("a.csv", b"text,label,label\nx,5,4\n", None, "columns 2 and 3 are all called 'label'; give"),
    ("a.csv", b"text,label,label\nx,5,4\n", "text label", "columns 2 and 3 are all called 'label'"),
    ("a.csv", b"text,label\nx\0y,5\n", None, "line 2, column 1: expected a text, found a NUL"),
    ("a.conll", b"Anna\nlives\n", None, "need 2 columns, for text and label. Received: columns=1"),
    ("a.json", b'{"data": [{"text": "x", "label": 1}]}', None, "the rows are inside 'data'"),
    (
        "a.json",
        b'{"text": ["x", "y"], "label": [1, 2]}',
        None,
        "found the columns 'text', 'label' as",
    ),
    (
        "a.json",
        b'{"text": {"0": "x", "1": "y"}, "label": {"0": 1, "1": 2}}',
        None,
        "found 'text', 'label' as pandas writes other forms of tables",
    ),
    ("a.csv", b"text,label\nx,5\n", "text label,x", "no column 'label,x'; .* is one column"),
    ("a.tsv", b"x\ny\nz\n", None, "line 1, .*Of the next 2 rows none can be read"),
    ("a.tsv", b"x\n", None, "line 1, .*There is no other row"),
    ("a.tsv", b"text\tlabel\n1\tx\ty\n", None, "line 2.*R's row names"),
    ("a.csv", b"tex\xfct,label\nx,y\n", None, "a.csv, line 1.*"),
    ("a.tsv", b"$FL2@(#) IBM SPSS\0", None, "expected text, found an SPSS file"),
    ("a.tsv", b"__label__pos a cat\n", None, "expected text, found lines of fastText"),
    ("a.tsv", b"x\ny\tz\n", None, r"line 1, .*\(--skip-bad-lines\) to leave such"),
    ("a.csv", b"<!DOCTYPE html>\n", None, "expected text, found a page of HTML"),
    ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", None, "a pointer of Git LFS"),
    ("a.tsv.gz", gzip.compress(b"x" * 257 + b"ustar", mtime=0), None, "a TAR archive: unpack it"),
    ("a.tsv.gz", gzip.compress(gzip.compress(b"x\ty", mtime=0), mtime=0), None, "packed twice"),
    ("a.csv", b"text,label\rx,5\ry,4\r", None, "lines must end with LF or CRLF, found CR alone"),
    ("a.csv", b"\x93NUMPY\x01\0v\0", None, "expected text, found a NumPy array"),
    ("a.csv", b"text,label\nx,5" + b"\0" * 20, None, "line 2, column 2: .* NUL"),
    (
        "a.csv",
        b'text,label\n"a\n\nb",5\n,4\n',
        None,
        "line 5, column 1: expected a text, found an em",
    ),
    (
        "a.csv",
        b"text,label\nx,\n",
        None,
        "line 2, column 2: expected a label, found an empty label",
    ),
    ("a.csv", b"", None, "a.csv: the file is empty"),
    ("a.csv", b"\n\n", None, "a.csv: the file has no row"),
    ("a.csv", b"text,label\n", None, "a.csv: there is no example"),
    ("a.tsv", b"text\tlabel\n", None, "a.tsv: there is no example"),
    ("a.tsv", b"a\tb\tc\n", "1 4", "a.tsv has 3 columns in its first line, 'a', 'b', 'c'. Rec"),
    ("a.tsv", b'"text"\t"y"\n"1"\t"x"\t"y"\n', None, "line 2.*R's row names"),
    ("a.tsv", b"a\tb\tc\nd\n", "1 2", "line 2, column 2: expected 2 tabs as in the first line, fo"),
    ("a.jsonl", b'{"text": "x", "label": 1}\n{"text": "x"}\n', None, "line 2: expected the column"),
    (
        "a.jsonl",
        b'{"text": "x", "label": {}}\n',
        None,
        "line 1, column 'label': .* found an object",
    ),
    ("a.jsonl", b'{"text": "x", "label": null}\n', None, "line 1, column 'label': .* an empty la"),
    ("a.jsonl", b'{"text": "x", "label": NaN}\n', None, "column 'label': .* found an empty label"),
    (
        "a.jsonl",
        b'{"text": "\\ud800", "label": 1}\n',
        None,
        "line 1: found a character that is half",
    ),
    ("a.jsonl", b'{"text": "x", "text": "y"}\n', None, "line 1: expected a JSON object: .*twice|"),
    (
        "a.jsonl",
        b'{"text": 1, "label": 2}\n{"text": \'x\'}\n',
        None,
        "line 2: .*: Expecting value in '{",
    ),
    ("a.jsonl", b'["text"]\n["x"]\n', None, "or an object in each line: Extra data"),
    ("a.jsonl", b'{\n"text": "x"\n}\n', None, "line 1: .* in each line: an object in several"),
    ("a.json", b'{"0": {"text": "x"}, "1": {"text": "y"}}', None, "as pandas writes other forms"),
    ("a.json", b'{"columns": ["text"], "index": [0], "data": [["x"]]}', None, "as pandas writes"),
    ("a.csv", b"text,label\nx,5\ntext,label\n", None, "line 3: the names of the columns again"),
    ("a.tsv", "text\tlabel\nx\t5\n\ufefftext\tlabel\n".encode(), None, "line 3: the names of the"),
    ("a.csv", b"| text | label |\n|---|---|\n| x | 5 |\n", None, "found a table of Markdown"),
    (
        "a.csv",
        b'text,label\n"x,5\n' + b"y,4\n" * 6 + b'z",3\n',
        None,
        "line 2: a quote begins a field of 8 lines, which are rows themselves",
    ),
    ("a.csv", b"id,text\n1,x\n", None, "none of the columns 'id', 'text' has a usual name for"),
    ("a.txt", b'{"cells": [\n]}\n', None, "found a Jupyter notebook"),
    ("a.csv", b'<?xml version="1.0"?>\n', None, "found XML"),
    ("a.csv", b"\xff\xff\xff\xff\x10", None, "found an Arrow stream"),
    ("a.tsv", "\u200b\tx\n".encode(), None, "line 1, column 1: .* found an empty text"),
    ("a.conll", b"x O\n" * 501, None, "the only sentence found has 501 words"),
    (
        "a.tsv",
        "été à la crème brûlée\tb\n".encode() * 3 + "été à\tb\n".encode("cp1252"),
        None,
        "line 4, .* Other lines are UTF-8: the file has several encodings",
    ),
    ("a.jsonl", b"text,label\n", None, "line 1: expected a JSON object"),
    ("a.json", b'[1, {"text": "x", "label": 1}]', None, "row 1: expected a JSON object, found '1'"),
    ("a.parquet", b"text,label\n", None, "cannot be read as Parquet"),
    ("a.conll", b"\n\n", None, "a.conll: the file has no sentence"),
    ("a.tsv", "é\tb\n".encode("utf-16"), None, r"byte order mark of UTF-16. .*--encoding utf-16\)"),
    ("a.tsv", "é\tb\n".encode("utf-32"), None, r"byte order mark of UTF-32"),
    (
        "a.tsv",
        "ab\tcd\n".encode("utf-16-be"),
        None,
        r"many zero bytes, as UTF-16-BE has. .*utf-16-be\)",
    ),
    (
        "a.tsv",
        "crème brûlée à la carte\tb\n".encode("cp1252"),
        None,
        r"may be in cp1252 or .*\('crème brûlée à la carte'\).* reads well\.$",  # none is left out
    ),
    ("a.tsv", b"1\ta\tx\n2\tb\ty\n", None, "say which to read: --columns text=2 label=3"),
    ("a.tsv", "мы жили, дым шёл\tмыл\n".encode("cp1251"), None, r"may be in cp1251"),
    (
        "a.tsv",
        8 * "Příliš žluťoučký kůň úpěl ďábelské ódy\tnákup\n".encode("iso8859_2"),
        None,
        r"iso8859_2 \('Příliš žluťoučký .*--encoding NAME",
    ),
    (
        "a.tsv",
        8 * "Zażółć gęślą jaźń, świetny zakup i szybka wysyłka\tdobry\n".encode("cp1250"),
        None,
        r"may be in cp1250 \('Zażółć.*cp1250\)",
    ),
    # Words too few to know the language: the right encoding is among those that are shown.
    ("a.tsv", 20 * "映画\t良い\n".encode("cp932"), None, r"or cp932 \('映画'\).*NAME"),
    ("a.tsv", 20 * "фильм\tмыл\n".encode("koi8_r"), None, r"koi8_r \('фильм'\)"),
    # Letters of two bytes, some of which are UTF-8 by chance.
    ("a.tsv", 20 * "路上的风景很美\t0\n".encode("gbk"), None, r"gb18030 \('路上的风景很美'\)"),
    (
        "a.tsv",
        20 * "長い旅路の果てに\t0\n".encode("euc_jp"),
        None,
        r"euc_jp \('長い旅路の果てに'\)",
    ),
    ("a.tsv", 20 * "хороший фильм\t1\n".encode("cp866"), None, r"cp866 \('хороший фильм'\)"),
    ("a.tsv", 9 * b"it\x92s \x93fine\x94\t1\n", None, r"may be in cp1252 or .*“fine”"),
    # Letters as ASCII, which reads like a text.
    (
        "a.tsv",
        "映画\t良い\n".encode("iso2022_jp"),
        None,
        r"iso2022_jp writes.*--encoding iso2022_jp\)",
    ),
    ("a.tsv", "영화\t1\n".encode("iso2022_kr"), None, "iso2022_kr writes"),
    ("a.tsv", 3 * "电影\t1\n".encode("hz"), None, "hz writes"),
    ("a.tsv", 3 * "schöner Film\t1\n".encode("utf_7"), None, "utf_7 writes"),
    ("a.tsv", b"a\tb\t\nc\td\t\n", None, "say which to read: --columns text=1 label=2"),
    ("a.tsv", b"# a\n# b\n" + 9 * b"a\tb\n", None, "Of the next 10 rows 1 cannot be read either"),
    ("a.tsv", b"PK\x03\x04 whatever", None, "expected text, found a ZIP archive or an Excel file"),
    ("a", b"PAR1 whatever", None, "expected text, found Parquet"),
]


@pytest.mark.parametrize(("name", "content", "columns", "message"), MISTAKES)
def test_mistakes(name, content, columns, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    columns = columns and dict(zip(ROLES, columns.split(), strict=True))
    refused(message, read_pairs, tmp_path / name, columns=columns, roles=ROLES)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_objects_within_objects(form, tmp_path):
    rows = [{"id": "1", "translation": {"en": "a b", "de": "c d"}, "tags": [3, 0]}]
    path = tmp_path / f"a.{form}"
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"source": "translation.en", "target": "translation.de"}
    assert rows_of(read_pairs(path, columns=columns)) == [("a b", "c d")]
    tagged = read_tagged_texts(path, columns={"text": "translation.de", "tags": "tags"})
    assert rows_of(tagged) == [("c d", "3 0")]
    refused("no column 'translation'; .*'translation.en'", read_pairs, path,
            columns=columns | {"source": "translation"})  # fmt: skip


def test_utf8_needs_no_encoding(tmp_path):
    (tmp_path / "a.tsv").write_bytes(as_tsv([("crème brûlée", "süß")]))
    refused("the file is UTF-8", read_pairs, tmp_path / "a.tsv", encoding="cp1252")


def test_lists_of_python_in_csv_are_words_and_tags(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,tags\n\"['Anna', 'sings']\",\"['B-PER', 'O']\"\n[x] y,O O\n")
    assert rows_of(read_tagged_texts(path)) == [("Anna sings", "B-PER O"), ("[x] y", "O O")]


def test_the_encoding_is_named_where_bad_lines_are_left_out(tmp_path):
    rows = [("мы жили, дым шёл", "да"), ("был тихий вечер", "нет")] * 9
    (tmp_path / "a.csv").write_bytes(as_csv(rows).decode().encode("cp1251"))
    message = r"all 18 lines are malformed.* cannot be decoded\. .* may be in cp1251.*cp1251\)"
    refused(message, read_pairs, tmp_path / "a.csv", roles=ROLES, skip_bad_lines=True)


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252", "latin-1", "utf-8-sig"])
def test_encodings(encoding, packed, tmp_path):
    rows = [("crème brûlée", "süß"), ("à la", "carte")] * 999
    path = tmp_path / "a.tsv"
    path.write_bytes(packed(as_tsv(rows).decode().encode(encoding)))
    assert rows_of(read_pairs(path, encoding=encoding)) == rows
    wrong = "the file is UTF-8" if encoding == "utf-8-sig" else "not in the encoding ascii"
    refused(wrong, read_pairs, path, encoding="ascii")
    refused("must be a text encoding", read_pairs, path, encoding="rot13")


def test_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    for number, row in enumerate(ROWS):
        (tmp_path / "parts" / f"{number}.tsv").write_bytes(as_tsv([row]))
    (tmp_path / "parts" / ".hidden").write_text("not an example")
    expected = [(a, b) for a, b in ROWS]
    for paths in ("parts", "parts/*.tsv", ["parts/[0-1].tsv", "parts/2.tsv"]):
        assert rows_of(read_pairs(paths)) == expected
    assert read_pairs(["parts/0.tsv", "parts/1.tsv"]).sources == [a for a, _ in ROWS[:2]]
    refused(r"No file matches the pattern parts/\*.csv", read_pairs, "parts/*.csv")
    (tmp_path / "parts" / "3.csv").write_text("a,b\n")
    refused("must be of one form; name them instead", read_pairs, "parts")
    (tmp_path / "b.txt").write_text("x\n")
    refused("the name of one of them is that of a table", read_pairs, ["parts/0.tsv", "b.txt"])


def test_files_of_tensorflow(tmp_path):
    import tensorflow as tf

    tf.io.gfile.makedirs("ram://folder")
    for number, row in enumerate(ROWS):
        with tf.io.gfile.GFile(f"ram://folder/{number}.csv.gz", "wb") as file:
            file.write(gzip.compress(as_csv([row])))
    for paths in (
        "ram://folder",
        "ram://folder/*.gz",
        [f"ram://folder/{n}.csv.gz" for n in (0, 1, 2)],
    ):
        assert rows_of(read_pairs(paths, roles=ROLES)) == ROWS
    with tf.io.gfile.GFile("ram://one.parquet", "wb") as file:
        file.write(as_parquet(BROKEN))
    assert rows_of(read_pairs("ram://one.parquet", roles=ROLES)) == BROKEN
    refused("ram://absent.tsv: no such file", read_pairs, "ram://absent.tsv")


def test_notes_say_what_was_chosen(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(as_csv([("1", *row) for row in ROWS], ("id", "Review", "stars")))
    assert read_pairs(path, roles=ROLES).notes == (
        f"{path}: columns text=Review, label=stars; not read: 'id'",
    )
    path = tmp_path / "a.tsv"
    path.write_bytes(as_tsv(ROWS, ("text", "label")))
    assert read_pairs(path, roles=ROLES).notes == (f"{path}: columns text=text, label=label",)
    path.write_bytes(as_tsv(ROWS))
    assert read_pairs(path, roles=ROLES).notes == ()
    path.write_text("en\tde\n" + 11 * "a cat\teine Katze\n")
    found = read_pairs(path)
    assert (len(found), "'en', 'de', is taken for names" in found.notes[0]) == (11, True)
    # Words and phonemes, numbers with a decimal comma; a first example is none of these.
    sounds = "".join(f"w{n}\t{'abcdef'[n % 6]} {'bcdea'[n // 6]}\n" for n in range(30))
    for first, count in (("Wort\tAussprache", 30), ("Wort\tIPA", 30), ("abc\ta b c", 31)):
        path.write_text(f"{first}\n{sounds}")
        found = read_pairs(path)
        assert (len(found), bool(found.notes)) == (count, count == 30), first
    for first, count in (("Deutsch\tEnglish", 20), ("Hallo\tHello", 21)):
        path.write_text(
            f"{first}\n" + "".join(f"Hallo, {n} Katzen\tHello {n}\n" for n in range(20))
        )
        assert len(read_pairs(path)) == count, first
    path.write_text("Anzeige\tMiete\n" + "".join(f"Nr {n}\t1.{n},50\n" for n in range(100, 130)))
    roles = ("text", "number")
    found = read_pairs(path, roles=roles)
    assert (found.targets[0], len(found)) == ((1100.5,), 30)
    path = tmp_path / "b.csv"
    path.write_text('text,number\nx,"2,5"\ny,"1.234,75"\nz,"1,5"\nz,4\n')
    found = read_pairs(path, roles=roles)
    assert found.targets == [(2.5,), (1234.75,), (1.5,), (4.0,)]
    assert "a decimal comma, such as 2,5" in found.notes[-1]
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"Nr {n}\t1,{n}\n" for n in range(100, 130)))  # perhaps thousands
    refused("'1,100' in place of a number", read_pairs, path, roles=roles)
    path.write_text(111 * "a\tb\n" + '"say ""no"""\tb\n"said"\t"a, b"\n')
    (note,) = read_pairs(path).notes
    assert "2 fields are in quotes as in CSV, which stay a part of the text" in note
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": ["a", "b"], "label": "x"}\n')
    found = read_pairs(path, roles=ROLES)
    assert found.sources == ["a b"]
    assert "lists in place of a text are joined with spaces, as in 'a b'" in found.notes[-1]


def test_malformed_rows_are_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,label\nx,1\ny\n\xff,2\n"\xff\n",2\n,3\nz,4\n')
    pairs = read_pairs(path, skip_bad_lines=True, roles=ROLES)
    assert (rows_of(pairs), pairs.skipped) == ([("x", "1"), ("z", "4")], 4)
    beginnings = [f"malformed: {path}, line {line}" for line in (3, 4, 5)]
    assert [note[: len(beginnings[0])] for note in pairs.notes[-3:]] == beginnings
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "\xff", "label": 1}\n{"text": 1}\n[]\n{"text": 1, "label": 2}\n')
    pairs = read_pairs(path, skip_bad_lines=True, roles=ROLES)
    assert (rows_of(pairs), pairs.skipped) == ([("1", "2")], 3)


def test_rows_after_an_open_quote_are_kept(tmp_path):
    lines = ["text,label", "a,1", '"b,2', "c,3", '"d\nd",4', '"e" e,5', "f,6"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    pairs = read_pairs(tmp_path / "a.csv", skip_bad_lines=True, roles=ROLES)
    assert rows_of(pairs) == [("a", "1"), ("c", "3"), ("d\nd", "4"), ("f", "6")]


LABELS = [(f"text {number}", "pos" if number % 2 else "neg") for number in range(10)]


@pytest.mark.parametrize(
    ("first", "is_noted"),
    [
        (("Kommentar", "Urteil"), True),
        (("text 10", "pos"), False),
        (("text 10", "1"), False),
        (("a text of its own", "rare"), False),
        (("Excellent", "pos"), False),  # whose label recurs
    ],
)
def test_a_first_line_that_may_hold_names_is_noted(tmp_path, first, is_noted):
    lines = ["\t".join(row) for row in [first, *LABELS]]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n")
    pairs = read_pairs(tmp_path / "a.tsv", roles=ROLES)
    assert len(pairs) == 11 - is_noted
    hint = "'Kommentar', 'Urteil', is taken for names of columns; if it is an example, set "
    hint += "--columns text=1 label=2"
    assert [hint in note for note in pairs.notes] == [True] * is_noted


def test_words_in_columns(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n# NN B-NP O\n")
    assert rows_of(read_tagged_texts(path)) == [("EU rejects", "B-ORG O"), ("#", "O")]
    tags = read_tagged_texts(path, columns={"text": 1, "tags": 2}).targets
    assert tags == ["NNP VBZ", "NN"]
    path.write_text("EU NNP B-ORG\nrejects O\n\n")
    refused("line 1: expected 3 columns, found 2 in this sentence", read_tagged_texts, path)
    path = tmp_path / "a.conllu"
    words = [
        "1\tVámonos\t_\tVERB",
        "1-2\tal\t_\t_",
        "1\ta\t_\tADP",
        "1.1\te\t_\tX",
        "2\tel\t_\tDET",
    ]
    path.write_text("# text = x\n" + "\n".join(words) + "\n")
    assert rows_of(read_tagged_texts(path)) == [("Vámonos a el", "VERB ADP DET")]


def test_scores(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sentence1,sentence2,score\na,b,4.5\nc,d,0\n")
    assert has_scores(path)
    found = read_scored_pairs(path)
    assert (found.sources, found.targets, found.scores) == (["a", "c"], ["b", "d"], [4.5, 0.0])
    path.write_text("sentence1,sentence2,score\na,b,good\n")
    refused("line 2, column 3: expected a score, found 'good' in place", read_scored_pairs, path)
    path.write_text("text,other\na,b\n")
    assert not has_scores(path)


def test_a_pipe_is_read_once(tmp_path):
    import os
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[as_tsv(ROWS)])
    writer.start()
    assert rows_of(read_pairs(path)) == ROWS
    writer.join()


def test_lines_of_other_encodings_do_not_depend_on_pieces(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes("é\nüüü\r\n\n日本".encode("utf-16"))
    monkeypatch.setattr("keras_attn.data.reading.content._CHUNK_BYTES", 3)
    assert list(iterate_lines(str(path), encoding="utf-16")) == ["é", "üüü", "", "日本"]


def test_empty_lines_at_the_end_of_a_tsv_are_no_rows(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\nc\td\n\n\n")
    assert rows_of(read_pairs(path)) == [("a", "b"), ("c", "d")]
    path.write_text("a\tb\n\nc\td\n")
    refused("line 2", read_pairs, path)


def test_a_csv_without_usual_names_is_read_by_order_if_its_first_line_holds_names(tmp_path):
    path = tmp_path / "a.csv"
    sounds = "".join(f"w{n},{'abcdef'[n % 6]} {'bcdea'[n // 6]}\n" for n in range(30))
    path.write_text("Wort,Aussprache\n" + sounds)
    found = read_pairs(path)
    assert (len(found), "'Wort', 'Aussprache', is taken for names" in found.notes[0]) == (30, True)
    path.write_text(sounds)
    refused("an example or the names of the columns", read_pairs, path)


def test_columns_of_conll_that_are_not_read_are_named(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("Anna NNP B-PER\nsings VBZ O\n")
    found = read_pairs(path, roles=("text", "tags"))
    assert rows_of(found) == [("Anna sings", "B-PER O")]
    assert "columns text=1, tags=3 of 3; the others are not read" in found.notes[0]
