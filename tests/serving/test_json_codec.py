"""JSON in and out, in the forms of TensorFlow Serving's guide."""

import json

import numpy as np
import pytest

from keras_attn.export.runtime import Signature, SignatureTensor
from keras_attn.serving import json_codec
from keras_attn.serving.errors import RequestError
from keras_attn.serving.json_codec import decode_inputs, encode_outputs, parse_request
from tests.export.toy import strings

pytestmark = pytest.mark.tensorflow


def signature(**dtypes):
    inputs = {
        name: SignatureTensor(f"{name}:0", np.dtype(dtype), None) for name, dtype in dtypes.items()
    }
    return Signature(inputs, {})


def decode(content, **dtypes):
    return decode_inputs(parse_request(json.dumps(content).encode()), signature(**dtypes))


def test_rows_and_columns_give_equal_arrays():
    rows = [{"tag": "foo", "signal": [1, 2, 3]}, {"tag": {"b64": "YmFy"}, "signal": [4, 5, 6.5]}]
    columns = {"tag": ["foo", {"b64": "YmFy"}], "signal": [[1, 2, 3], [4, 5, 6.5]]}
    dtypes = {"tag": object, "signal": "float32"}
    for inputs in (decode({"instances": rows}, **dtypes), decode({"inputs": columns}, **dtypes)):
        assert inputs["tag"].tolist() == [b"foo", b"bar"]
        assert inputs["signal"].dtype == np.float32
        assert inputs["signal"].tolist() == [[1, 2, 3], [4, 5, 6.5]]


def test_a_single_input_needs_no_name():
    for content in ({"instances": ["é", ""]}, {"inputs": ["é", ""]}, {"inputs": {"x": ["é", ""]}}):
        assert decode(content, x=object)["x"].tolist() == ["é".encode(), b""]
    assert decode({"instances": [{"b64": "/w=="}]}, x=object)["x"].tolist() == [b"\xff"]
    assert decode({"inputs": {"b64": "/w=="}}, x=object)["x"].item() == b"\xff"
    assert decode({"inputs": 7}, x="int64")["x"].shape == ()
    assert decode({"inputs": []}, x="int64")["x"].shape == (0,)
    assert decode({"inputs": [[[1], [2]], [[3], [4]]]}, x="int8")["x"].shape == (2, 2, 1)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1.0], "int32"),
        ([2**31], "int32"),
        ([-1], "uint8"),
        ([2**64], "uint64"),
        ([True], "int32"),
        ([1], "bool"),
        (["1"], "float32"),
        ([None], "float32"),
        ([1e39], "float32"),
        ([10**400], "float64"),
        ([1], object),
        ([{"b64": "?"}], object),
        ([{"b64": "QQ=\u00e9"}], object),
        ([{"b64": 1}], object),
        ([{"b64": "QQ==", "more": 1}], object),
        (["\ud800"], object),
        ([[1, 2], [3]], "int32"),
        ([[1], 2], "int32"),
        ([1, [2]], "int32"),
        ([[], [1]], "int32"),
    ],
)
def test_what_does_not_fit_is_refused(value, dtype):
    with pytest.raises(RequestError, match="nput.* 'x'|instances") as raised:
        decode({"inputs": value}, x=dtype)
    assert raised.value.code.http_status == 400
    assert len(str(raised.value)) <= 400


def test_numbers_at_the_edge_fit():
    edges = [2**31 - 1, -(2**31)]
    assert decode({"inputs": edges}, x="int32")["x"].tolist() == edges
    assert decode({"inputs": [3.4e38]}, x="float32")["x"][0] == np.float32(3.4e38)
    body = b'{"inputs": [NaN, -Infinity]}'
    decoded = decode_inputs(parse_request(body), signature(x="float32"))["x"]
    assert np.isnan(decoded[0])
    assert decoded[1] == -np.inf


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON Parse error"),
        (b"{", "JSON Parse error"),
        (b"\xff", "JSON Parse error"),
        ('{"inputs": [1]}'.encode("utf-16"), "JSON Parse error"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"inputs": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "nested too deeply"),
        (b'{"inputs": [' + b"1" * 5000 + b"]}", "JSON Parse error"),
        (b"[1]", "must be a JSON object. Received: a list"),
        (b"{}", "either the key 'instances' or the key 'inputs'"),
        (b'{"inputs": [1], "instances": [1]}', "either the key"),
        (b'{"instances": []}', "at least one value"),
        (b'{"instances": {"x": 1}}', "at least one value"),
        (b'{"instances": [1], "signature_name": 5}', "'signature_name' must be a string"),
    ],
)
def test_what_is_no_request_is_refused(body, message):
    with pytest.raises(RequestError, match=message):
        parse_request(body)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"instances": [1]}, "names of the inputs: a, b"),
        ({"inputs": [1]}, "names of the inputs: a, b"),
        ({"instances": [{"a": 1}]}, "the keys a, b. Received at 0"),
        ({"instances": [{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}]}, "Received at 1: an object"),
        ({"instances": [{"a": 1, "b": 2}, 3]}, "Received at 1: 3"),
        ({"inputs": {"a": [1]}}, "Missing: b"),
    ],
)
def test_names_must_be_the_signatures(content, message):
    with pytest.raises(RequestError, match=message):
        decode(content, a="int32", b="int32")


def test_signature_name():
    assert parse_request(b'{"inputs": 1}').signature == "serving_default"
    assert parse_request(b'{"inputs": 1, "signature_name": ""}').signature == "serving_default"
    assert parse_request(b'{"inputs": 1, "signature_name": "x"}').signature == "x"


def test_outputs_by_rows_and_columns():
    outputs = {
        "text": strings(b"a", "é".encode()),
        "raw_bytes": strings(b"\xff\x00", b""),
        "score": np.array([0.1, -np.inf], np.float32),
        "ids": np.array([[1, 2], [3, 4]]),
    }
    assert json.loads(encode_outputs(outputs, by_rows=True)) == {
        "predictions": [
            {"text": "a", "raw_bytes": {"b64": "/wA="}, "score": 0.1, "ids": [1, 2]},
            {"text": "é", "raw_bytes": {"b64": ""}, "score": -np.inf, "ids": [3, 4]},
        ]
    }
    assert json.loads(encode_outputs(outputs, by_rows=False)) == {
        "outputs": {
            "text": ["a", "é"],
            "raw_bytes": [{"b64": "/wA="}, {"b64": ""}],
            "score": [0.1, -np.inf],
            "ids": [[1, 2], [3, 4]],
        }
    }


def test_a_single_output_has_no_name():
    one = {"score": np.array([0.5, 2], np.float32)}
    assert encode_outputs(one, by_rows=True) == b'{"predictions": [0.5, 2.0]}'
    assert encode_outputs(one, by_rows=False) == b'{"outputs": [0.5, 2.0]}'
    assert encode_outputs({"n": np.array(3)}, by_rows=False) == b'{"outputs": 3}'
    text = {"text": strings(b'\xff<\x00"')}
    assert json.loads(encode_outputs(text, by_rows=True)) == {"predictions": ['\ufffd<\x00"']}


@pytest.mark.parametrize("by_rows", [True, False])
def test_large_outputs_are_encoded_in_parts_alike(by_rows, monkeypatch):
    rng = np.random.default_rng(0)
    outputs = {
        "maps": rng.normal(size=(5, 3, 4, 6)).astype("float32"),
        "text": np.array([[b"a", b"\xff"]] * 5, object),
        "words": np.array([[b"a"] * 11] * 5, object),
    }
    for chosen in (outputs, {"maps": outputs["maps"]}, {"words": outputs["words"]}):
        expected = encode_outputs(chosen, by_rows)
        with monkeypatch.context() as patch:
            patch.setattr(json_codec, "VALUES_AT_ONCE", 5)
            assert encode_outputs(chosen, by_rows) == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_survive(dtype):
    numbers = np.random.default_rng(0).normal(size=211).astype(dtype)
    read = json.loads(encode_outputs({"x": numbers}, by_rows=False))["outputs"]
    np.testing.assert_array_equal(np.array(read, dtype), numbers)


def test_outputs_that_are_no_rows_cannot_be_asked_for_by_rows():
    for outputs in ({"a": np.zeros(2), "b": np.zeros(3)}, {"a": np.array(1)}):
        with pytest.raises(RequestError, match="Use 'inputs', since"):
            encode_outputs(outputs, by_rows=True)
