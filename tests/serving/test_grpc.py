"""The public stubs of TensorFlow Serving get what `predict` gives."""

import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_attn.serving.tensor_protos import to_proto
from tests.export.toy import expected
from tests.tasks.made import TEXTS

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def channel(served):
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc}") as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def request_of(model, signature="", version=None, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def refused(call, request, timeout=20):
    with pytest.raises(grpc.RpcError) as raised:
        call(request, timeout=timeout)
    return raised.value.code().name, raised.value.details()


def test_predict_answers_as_the_task_predicts(stub, task):
    response = stub.Predict(request_of("tiny", text=TEXTS), timeout=20)
    assert response.model_spec.name == "tiny"
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "serving_default"
    best = [hypotheses[0] for hypotheses in task.predict_n_best(TEXTS, 1)]
    texts = tf.make_ndarray(response.outputs["text"])
    assert [text.decode() for text in texts] == [hypothesis.text for hypothesis in best]
    # As TensorFlow Serving writes them: values, not `tensor_content`.
    scores = [hypothesis.score for hypothesis in best]
    np.testing.assert_allclose(response.outputs["score"].float_val, scores, rtol=1e-5)

    n_best = stub.Predict(request_of("tiny", "n_best", text=TEXTS), timeout=20).outputs["text"]
    assert [[text.decode() for text in row] for row in tf.make_ndarray(n_best)] == [
        [hypothesis.text for hypothesis in hypotheses]
        for hypotheses in task.predict_n_best(TEXTS, 2)
    ]


def test_a_version_and_some_outputs_may_be_named(stub):
    request = request_of("toy", version=1, text=["abc"])
    request.output_filter.append("score")
    response = stub.Predict(request, timeout=20)
    assert list(response.outputs) == ["score"]
    assert response.outputs["score"].float_val == [expected("abc")[1]]
    request.output_filter.append("length")
    code, message = refused(stub.Predict, request)
    assert code == "INVALID_ARGUMENT"
    assert message == "output tensor alias not found in signature: length"


def test_long_lists_of_names_and_sizes_take_no_time(stub):
    request = request_of("toy", text=["abc"])
    request.output_filter.extend(["score", "text"] * 5_000)
    start = time.perf_counter()
    assert sorted(stub.Predict(request, timeout=20).outputs) == ["score", "text"]
    wide = request_of("toy", text=["abc"])
    for _ in range(5_000):
        wide.inputs["text"].tensor_shape.dim.add(size=1 << 62)
    assert "has 5001 dimensions" in refused(stub.Predict, wide)[1]
    many = request_of("toy", text=["abc"])
    for number in range(1_000):
        many.inputs[f"x{number}"].CopyFrom(many.inputs["text"])
    assert "The inputs of signature 'serving_default' are text." in refused(stub.Predict, many)[1]
    assert time.perf_counter() - start < 5


def test_metadata(stub):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "toy"
    response = stub.GetModelMetadata(request, timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert response.model_spec.version.value == 1
    inputs = signatures.signature_def["token_ids"].inputs
    assert inputs["token_ids"].dtype == tf.int32.as_datatype_enum
    request.metadata_field.append("weights")
    message = "Metadata field weights is not supported"
    assert refused(stub.GetModelMetadata, request) == ("INVALID_ARGUMENT", message)


def test_status(channel):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "toy"
    [status] = stub.GetModelStatus(request, timeout=20).model_version_status
    assert (status.version, status.state) == (1, status.AVAILABLE)
    request.model_spec.name = "none"
    assert refused(stub.GetModelStatus, request)[0] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (predict_pb2.PredictRequest(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (request_of("none", text=["a"]), "NOT_FOUND", "Servable not found"),
        (request_of("toy", version=3, text=["a"]), "NOT_FOUND", "Specific(toy, 3)"),
        (request_of("toy", version=-1, text=["a"]), "NOT_FOUND", "Specific(toy, -1)"),
        (request_of("toy", "no", text=["a"]), "FAILED_PRECONDITION", '"no" not found'),
        (request_of("toy"), "INVALID_ARGUMENT", "are text. Received: none"),
        (request_of("toy", text=["a"], more=[1]), "INVALID_ARGUMENT", "Received: more, text"),
        (request_of("toy", text=[1.5]), "INVALID_ARGUMENT", "of type string. Received: float32"),
        (request_of("toy", text=[["a"]]), "INVALID_ARGUMENT", "the shape [any]"),
        (request_of("tiny", text=["a" * 11]), "INVALID_ARGUMENT", "at most 10 tokens"),
    ],
)
def test_errors_have_servings_codes(stub, request_, code, message):
    received, details = refused(stub.Predict, request_)
    assert received == code
    assert message in details


@pytest.mark.parametrize(
    ("dtype", "shape", "fields"),
    [
        ("float32", [10**6, 10**6], {"float_val": [1.0]}),
        ("string", [2**40], {"string_val": [b"a"]}),
        ("string", [-1], {"string_val": [b"a"]}),
        ("string", [1], {"string_val": [b"a", b"b"]}),
        ("int32", [3], {"tensor_content": b"\0" * 5}),
    ],
)
def test_a_tensor_that_lies_is_refused(stub, dtype, shape, fields):
    tensor = tf.make_tensor_proto([], dtype=dtype, shape=[0])
    tensor.Clear()
    tensor.dtype = tf.as_dtype(dtype).as_datatype_enum
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    for field, value in fields.items():
        if field == "tensor_content":
            tensor.tensor_content = value
        else:
            getattr(tensor, field).extend(value)
    request = request_of("toy")
    request.inputs["text"].CopyFrom(tensor)
    assert refused(stub.Predict, request)[0] == "INVALID_ARGUMENT"


def test_what_there_is_not(stub):
    request = classification_pb2.ClassificationRequest()
    assert refused(stub.Classify, request)[0] == "UNIMPLEMENTED"


def test_a_client_may_be_in_a_hurry(stub):
    request = request_of("odd", count=np.array([300_000], np.int32), image_bytes=[b""])
    assert refused(stub.Predict, request, timeout=0.02)[0] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -np.inf, np.nan]], np.float32),
        np.array([0.1], np.float64),
        np.array([1.5, -2], np.float16),
        np.array([-1, 2**31 - 1], np.int32),
        np.array([2**63 - 1]),
        np.array([2**64 - 1], np.uint64),
        np.array([200], np.uint8),
        np.array([True, False]),
        np.array(7, np.int8),
        np.array([[b"\xff\x00", b""]], object),
        np.zeros((0, 3), np.float32),
    ],
)
def test_tensors_are_what_tensorflow_reads(array):
    read = tf.make_ndarray(to_proto(array))
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read, array)
