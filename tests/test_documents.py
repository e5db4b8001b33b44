"""Documents that are hostile, damaged or none: one line each, and in no time."""

import ast
import os
import pathlib

import pytest

from keras_attn import limits
from keras_attn.documents import parse_json, parse_yaml, read_json, read_yaml
from keras_attn.reading import path_inside, read_bytes
from tests.refusals import message_of, refused

PROJECT = pathlib.Path(__file__).resolve().parents[1]
DIGITS = "9" * 5_000
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(40)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}]\n" for n in range(300))


def nested(depth, inside="1"):
    return "[" * depth + inside + "]" * depth


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_json, "{", "file: valid JSON is expected: Expecting property name"),
        (parse_json, "", "file: valid JSON is expected: Expecting value"),
        (parse_json, nested(100_000), "file: the JSON is nested too deeply."),
        (parse_json, nested(101), "file: at most 100 levels of nesting in JSON and YAML"),
        (parse_json, '{"a": ' * 101 + "1" + "}" * 101, "file: at most 100 levels"),
        (parse_json, DIGITS, "file: a number has too many digits."),
        (parse_json, f'{{"a": [-{DIGITS}]}}', "file: a number has too many digits."),
        (parse_json, '{"a": 1, "b": {"c": 1, "c": 2}}', "duplicate key 'c'."),
        (parse_yaml, "a: [", "file is not valid YAML"),
        (parse_yaml, nested(5_000), "file: the YAML is nested too deeply."),
        (parse_yaml, nested(101), "file: at most 100 levels of nesting"),
        (parse_yaml, CHAIN, "file: at most 100 levels of nesting"),
        (parse_yaml, LAUGHS, "file: at most 100,000 values of YAML, aliases written out,"),
        (parse_yaml, "&a [*a]", "file: an alias must not contain itself."),
        (parse_yaml, "2001-99-99", "file: line 1 has a value of type 'timestamp', which is not"),
        (parse_yaml, "a: 1\nb: [2001-09-09]", "file: line 2 has a value of type 'timestamp'"),
        (parse_yaml, "a: 1:30", "line 1 has 1:30, which needs quotes"),
        (parse_yaml, "a: 1:30.5", "line 1 has 1:30.5, which needs quotes"),
        (parse_yaml, "!!binary aGk=", "file: line 1 has a value of type 'binary'"),
        (parse_yaml, "a: !!set {b, c}", "file: line 1 has a value of type 'set'"),
        (parse_yaml, "!!omap [a: 1]", "file: line 1 has a value of type 'omap'"),
        (parse_yaml, "a: {1: b}", "file: line 1 has a key of type 'int', which is not supported"),
        (parse_yaml, "? [a]\n: b", "file: line 1 has a key of type 'seq'"),
        (parse_yaml, "on: b", "file: line 1 has a key of type 'bool'"),
        (parse_yaml, f"a: 1\nb: {DIGITS}", "line 2 has a number with too many digits"),
        (parse_yaml, "0x" + "f" * 40, "line 1 has a number with too many digits"),
        (parse_yaml, "!!python/object/apply:os.getcwd []", "has a value of type 'python/object"),
        (parse_yaml, "x" * (1 << 20 | 1), "file: at most 1,048,576 bytes of YAML are accepted."),
    ],
)
def test_what_is_refused_takes_one_line(parse, text, message):
    told = message_of(parse, text, "file")
    assert message in told
    assert len(told) < 500


def test_what_is_accepted():
    assert parse_json(nested(100), "file") == parse_yaml(nested(100), "file")
    assert parse_json('{"a": "' + "[{" * 200 + '"}', "file") == {"a": "[{" * 200}
    assert parse_json('{"a": [NaN, 1e3]}', "file")["a"][1] == 1000.0
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: '2001-09-09'}", "file")["b"]["x"] == 1
    assert parse_yaml("", "file") is None
    state = 2**128 - 1  # of a random generator
    assert parse_json(str(state), "file") == parse_yaml(str(state), "file") == state


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "/dev/zero", ".", "/dev/stdin/.."):
        refused("expected a regular file|no such file", read_bytes, tmp_path / name)
    refused("is not a valid file name", read_bytes, tmp_path / "a\0b")
    for read in (read_json, read_yaml):
        refused("expected a regular file", read, "/dev/zero")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # of which the disk holds nothing
    for read in (read_json, read_yaml):
        refused("huge: at most .* bytes of .* are accepted", read, tmp_path / "huge")


def test_a_limit_is_raised_by_its_variable(monkeypatch):
    message = "set the environment variable KERAS_ATTN_MAX_DEPTH to a"
    refused(message, parse_json, nested(200), "file")
    monkeypatch.setenv("KERAS_ATTN_MAX_DEPTH", "200")
    assert parse_json(nested(200), "file")
    for value in ("many", "0", "-1", "1.5", DIGITS):
        monkeypatch.setenv("KERAS_ATTN_MAX_DEPTH", value)
        refused("KERAS_ATTN_MAX_DEPTH must be a positive integer", parse_json, "1", "file")


NAMES = ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "a\0b", "C:x", "a\nb"]


@pytest.mark.parametrize("name", [*NAMES, "x" * 300, 7, None])
def test_names_that_leave_their_folder(tmp_path, name):
    message = r"file may only refer to files in its folder\. Received"
    refused(message, path_inside, tmp_path, name, "file")


def test_links_that_leave_their_folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inner").write_text("")
    (folder / "good").symlink_to("inner")
    (folder / "bad").symlink_to("/etc/passwd")
    assert path_inside(folder, "good", "file") == folder / "good"
    assert path_inside(folder, "to come", "file") == folder / "to come"
    refused("this is a link to another place", path_inside, folder, "bad", "file")


def test_every_limit_is_documented():
    page = (PROJECT / "docs/pages/reference/limits.md").read_text("utf-8")
    for limit in (each for each in vars(limits).values() if isinstance(each, limits.Limit)):
        assert f"| `{limit.variable}` | {limit.default:,} |" in page, limit


def test_documents_are_parsed_in_one_place():
    home = PROJECT / "keras_attn" / "documents.py"
    for path in sorted((PROJECT / "keras_attn").rglob("*.py")):
        if path == home:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                call = (node.value.id, node.attr)
                forbidden = node.attr in ("load", "loads", "safe_load", "full_load", "unsafe_load")
                assert not (call[0] in ("json", "yaml") and forbidden), (path, node.lineno)
