import json

import numpy as np
import pytest

from keras_attn.export import golden
from tests.export.toy import strings
from tests.refusals import refused_in_one_line


def test_arrays_survive_the_file(tmp_path):
    inputs = {"text": strings(b"", "é".encode(), b"\xff\x00\xed\xa0\x80")}
    outputs = {
        "score": np.array([0.1, -np.inf, 1e-30], np.float32),
        "ids": np.array([[2**31 - 1, -5]], np.int32),
        "ended": np.array([True, False]),
        "none": np.zeros((0, 3), np.int64),
    }
    written = golden.Golden([("serving_default", inputs, outputs)], rtol=0.0625)
    golden.write_golden(tmp_path, written)
    [(name, read_inputs, read_outputs)], rtol = golden.read_golden(tmp_path)
    assert rtol == 0.0625
    assert name == "serving_default"
    for written, read in ((inputs, read_inputs), (outputs, read_outputs)):
        assert sorted(read) == sorted(written)
        for key, array in written.items():
            assert read[key].dtype == array.dtype
            assert read[key].shape == array.shape
            np.testing.assert_array_equal(read[key], array)


SCORE = np.array([[1.0, 100.0], [-np.inf, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("received", "difference"),
    [
        (SCORE * np.float32(1.00005), None),
        (SCORE + np.float32(5e-6), None),
        (SCORE * np.float32(1.0003), "differs in 2 of 4 values, first at (0, 0)"),
        (np.array([[1, 100], [-9e9, 0]], np.float32), "differs in 1 of 4 values, first at (1, 0)"),
        (np.array([[1, np.nan], [-np.inf, 0]], np.float32), "first at (0, 1): np.float32(nan)"),
        (SCORE.astype(np.float64), "is float64 (2, 2) instead of float32 (2, 2)"),
        (SCORE[:1], "is float32 (1, 2) instead of float32 (2, 2)"),
    ],
)
def test_floats_have_a_tolerance(received, difference):
    differences = golden.compare({"score": SCORE}, {"score": received})
    if difference is None:
        assert differences == []
    else:
        assert len(differences) == 1
        assert differences[0].startswith("output 'score' ")
        assert difference in differences[0]


@pytest.mark.parametrize(("factor", "equal"), [(1.0009, True), (1.0011, False)])
def test_the_tolerance_can_be_chosen(factor, equal):
    received = {"score": SCORE * np.float32(factor)}
    assert (golden.compare({"score": SCORE}, received, rtol=1e-3) == []) is equal


@pytest.mark.parametrize(
    ("expected", "received", "difference"),
    [
        (np.array([5, 7]), np.array([5, 8]), "first at (1,): np.int64(8) instead of np.int64(7)"),
        (strings(b"a", b"b"), strings(b"a", b"c"), "first at (1,): b'c' instead of b'b'"),
    ],
)
def test_all_else_must_be_equal(expected, received, difference):
    assert golden.compare({"x": expected}, {"x": expected.copy()}) == []
    [found] = golden.compare({"x": expected}, {"x": received})
    assert difference in found
    assert golden.compare({"x": expected}, {"y": expected}) == ["outputs ['y'] instead of ['x']"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "The export is incomplete: .*golden.json is missing"),
        ("{", "valid JSON is expected: Expecting"),
        ("[]", "not a file of golden outputs"),
        (json.dumps({"examples": [], "rtol": 1e-4}), "contains no example"),
        (json.dumps({"examples": [], "rtol": None}), "not a file of golden outputs"),
        (json.dumps({"examples": []}), "not a file of golden outputs.*'rtol'"),
        (json.dumps({"examples": [{"signature": "a"}]}), "not a file of golden outputs.*'inputs'"),
    ],
)
def test_a_damaged_file_is_one_clear_line(tmp_path, content, message):
    path = tmp_path / golden.GOLDEN
    path.parent.mkdir()
    if content is not None:
        path.write_text(content)
    assert str(path) in refused_in_one_line(message, golden.read_golden, tmp_path)
