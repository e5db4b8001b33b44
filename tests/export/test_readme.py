"""The page beside an export: what it asks for is answered as it says."""

import json
import re
import shlex
import sys
import types
from concurrent import futures

import numpy as np
import pytest

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.export.layout import README
from keras_attn.export.manifests import IMAGE
from keras_attn.export.readme import column_answer, row_answer, row_request
from tests.export.toy import ToyTask, expected

NAME = "toy"


@pytest.fixture(scope="module")
def page(toy_model):
    return (toy_model / README).read_text("utf-8")


@pytest.fixture(scope="module")
def served(toy_model):
    with CppSavedModel(toy_model) as model:
        yield model


def blocks(page):
    """The contents of fenced blocks by language."""
    found = re.findall(r"^```(\w*)\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    return [[text for language, text in found if language == of] for of in ("", "python")]


def answered(model, body):
    """What a server says to a request, by what its documentation says of both forms."""
    signature = body.get("signature_name", "serving_default")
    if "instances" in body:
        rows = body["instances"]
        inputs = {key: [row[key] for row in rows] for key in rows[0]}
    else:
        inputs = body["inputs"]
    outputs = {
        key: [item.decode() for item in array] if array.dtype == object else array.tolist()
        for key, array in model.run(signature, inputs).items()
    }
    if "inputs" in body:
        return {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))}
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    return {"predictions": [row if len(row) > 1 else next(iter(row.values())) for row in rows]}


def parsed(command):
    curl, flag, data, address = shlex.split(command)
    assert (curl, flag) == ("curl", "-d")
    assert address == f"localhost:8501/v1/models/{NAME}:predict"
    return json.loads(data)


def test_signatures_are_listed_with_dtypes_and_shapes(page):
    lines = page.splitlines()
    assert lines[0] == "# toy"
    outputs = "`score` float32 (batch), `text` string (batch)"
    assert f"| `serving_default` | `text` string (batch) | {outputs} |" in lines
    assert "| `token_ids` | `token_ids` int32 (batch, any) | `scores` float32 (batch, 2) |" in lines
    assert "xla" not in page.lower()


def test_requests_are_answered_as_it_says(page, served):
    shell, _ = blocks(page)
    # docker; a row and its answer; columns and their answers; the other signature with both.
    _, row, row_said, column, column_said, other = shell
    assert parsed(row) == {"instances": [{"text": "abc"}]}
    text, score = expected("abc")
    assert json.loads(row_said) == {"predictions": [{"score": score, "text": text}]}
    pairs = [(row, row_said), (column, column_said), tuple(other.split("\n"))]
    for request, said in pairs:
        assert answered(served, parsed(request)) == json.loads(said)
    assert parsed(other.split("\n")[0])["signature_name"] == "token_ids"


def test_the_python_client_of_rest_prints_the_answer(page, served, monkeypatch, capsys):
    def post(address, json, timeout):
        assert address == f"http://localhost:8501/v1/models/{NAME}:predict"
        body = answered(served, json)
        return types.SimpleNamespace(raise_for_status=lambda: None, json=lambda: body)

    monkeypatch.setitem(sys.modules, "requests", types.SimpleNamespace(post=post))
    exec(blocks(page)[1][0], {})
    text, score = expected("abc")
    assert eval(capsys.readouterr().out) == [{"score": score, "text": text}]


def test_the_python_client_of_grpc_prints_the_answer(page, served, capsys):
    grpc = pytest.importorskip("grpc")
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            assert request.model_spec.name == NAME
            inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
            response = predict_pb2.PredictResponse()
            for key, array in served.run("serving_default", inputs).items():
                response.outputs[key].CopyFrom(tf.make_tensor_proto(array))
            return response

    server = grpc.server(futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        exec(blocks(page)[1][1].replace("localhost:8500", f"127.0.0.1:{port}"), {})
    finally:
        server.stop(None).wait()
    text, score = expected("abc")
    printed = eval(capsys.readouterr().out)
    assert printed == {"text": [text.encode()], "score": [score]}


def test_bytes_ids_and_numbers_as_rest_has_them():
    strings = np.array([b"\xff\x00", b"a"], object)
    inputs = {"image_bytes": strings, "ids": np.array([[5, 2, 0], [7, 0, 0]], np.int32)}
    assert row_request(inputs, "other") == {
        "signature_name": "other",
        "instances": [
            {"image_bytes": {"b64": "/wA="}, "ids": [5, 2]},
            {"image_bytes": {"b64": "YQ=="}, "ids": [7, 0]},
        ],
    }
    outputs = {"score": np.array([0.1, -np.inf], np.float32)}
    assert row_answer(outputs) == column_answer(outputs) == [0.1, -np.inf]


def test_xla_is_told(tmp_path):
    page = (export_saved_model(ToyTask(), tmp_path / NAME, jit=True) / README).read_text("utf-8")
    assert f"{IMAGE} --xla_cpu_compilation_enabled" in page
