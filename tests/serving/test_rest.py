"""The REST API gives what `predict` gives, in TensorFlow Serving's forms and with its statuses."""

import asyncio
import base64
import collections
import contextlib
import dataclasses
import gzip
import http.client
import re
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_attn.serving import ModelSettings
from tests.export.toy import expected
from tests.serving.conftest import LIMITS, running
from tests.serving.http import ask, predict, predicted, send
from tests.tasks.made import TEXTS

pytestmark = pytest.mark.tensorflow


def test_rows_and_columns_answer_as_the_task_predicts(served, task):
    best = [hypotheses[0] for hypotheses in task.predict_n_best(TEXTS, 1)]
    rows = predicted(served, "tiny", instances=TEXTS)["predictions"]
    assert [row["text"] for row in rows] == [hypothesis.text for hypothesis in best]
    scores = [hypothesis.score for hypothesis in best]
    np.testing.assert_allclose([row["score"] for row in rows], scores, rtol=1e-5)

    outputs = predicted(served, "tiny", inputs={"text": TEXTS})["outputs"]
    assert outputs["text"] == [row["text"] for row in rows]
    assert sorted(outputs) == sorted(rows[0])
    named = [{"text": text} for text in TEXTS]
    assert predicted(served, "tiny", instances=named)["predictions"] == rows


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head(served):
    """On one connection, and after its first answers, which Linux acknowledges at once."""
    seconds = []
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", served.rest)) as connection:
        for _ in range(40):
            start = time.perf_counter()
            connection.request("GET", "/v1/models/toy")
            assert connection.getresponse().read()
            seconds.append(time.perf_counter() - start)
    assert min(seconds[-20:]) < 0.03  # Linux acknowledges after 40 ms


def test_signatures_by_name(served, task):
    answer = predicted(served, "tiny", signature_name="n_best", instances=TEXTS)
    for row, hypotheses in zip(answer["predictions"], task.predict_n_best(TEXTS, 2), strict=True):
        assert row["text"] == [hypothesis.text for hypothesis in hypotheses]
    content = {"signature_name": "score", "inputs": {"text": ["abc"], "target": ["AA B"]}}
    answer = predicted(served, "tiny", **content)
    assert answer["outputs"]["log_probability"] == pytest.approx(task.score(["abc"], ["AA B"]))
    ids = {"signature_name": "token_ids", "instances": [[4, 5], [8, 3]]}
    # Weights of a and b, of e and an unknown letter, three times; a single output has no name.
    assert predict(served, "toy", **ids) == (200, {"predictions": [[15, 15], [30, 30]]})


def test_bytes_come_and_go_in_base64(served):
    content = [{"count": 3, "image_bytes": {"b64": base64.b64encode(b"\xff\x00").decode()}}]
    answer = predicted(served, "odd", instances=content)
    assert answer["predictions"] == [{"count": 3, "same_bytes": {"b64": "/wA="}}]


def test_a_version_may_be_named(served):
    text, score = expected("abc")
    row = {"text": text, "score": score}
    content = {"instances": ["abc"]}
    for path in ("/v1/models/toy:predict", "/v1/models/toy/versions/1:predict"):
        assert ask(served, path, content) == (200, {"predictions": [row]})


def test_status(served):
    status = {"error_code": "OK", "error_message": ""}
    state = {"version": "1", "state": "AVAILABLE", "status": status}
    for path in ("/v1/models/toy", "/v1/models/toy/versions/1"):
        assert ask(served, path) == (200, {"model_version_status": [state]})


def test_metadata(served):
    status, answer = ask(served, "/v1/models/toy/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": "toy", "signature_name": "", "version": "1"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert {"serving_default", "token_ids"} <= set(signatures)
    ids = signatures["token_ids"]["inputs"]["token_ids"]
    assert ids["dtype"] == "DT_INT32"
    assert [dim["size"] for dim in ids["tensor_shape"]["dim"]] == ["-1", "-1"]
    assert signatures["token_ids"]["method_name"] == "tensorflow/serving/predict"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/v1/models/none", 404, "Could not find any versions of model none"),
        ("GET", "/v1/models/toy/versions/3", 404, "Could not find version 3 of model toy"),
        ("GET", "/v1/models/toy/labels/stable", 400, "Unrecognized servable version label"),
        ("GET", "/v1/models/toy/versions/3/metadata", 404, r"request: Specific\(toy, 3\)"),
        ("GET", "/v1/models", 400, "Malformed request: GET /v1/models"),
        ("GET", "/v1/models/", 400, "Malformed request: GET"),
        ("GET", "/elsewhere", 404, "Not found: /elsewhere"),
        ("GET", "/v1/models/toy:predict", 400, "Malformed request: GET /v1/models/toy:predict"),
        ("POST", "/v1/models/toy", 400, "Malformed request: POST /v1/models/toy"),
        ("PUT", "/v1/models/toy:predict", 400, "Malformed request: PUT"),
        ("BREW", "/v1/models/toy:predict", 400, "Malformed request: BREW"),
        ("POST", "/v1/models/none:predict", 404, r"request: Latest\(none\)"),
        ("POST", "/v1/models/toy/versions/3:predict", 404, r"request: Specific\(toy, 3\)"),
        ("POST", f"/v1/models/toy/versions/{2**64}:predict", 400, "Failed to convert version"),
        ("POST", "/v1/models/toy:classify", 501, "classify is not supported, only predict"),
        ("POST", "/v1/models/toy:predict", 400, "JSON Parse error"),
    ],
)
def test_errors_have_servings_statuses(served, method, path, status, message):
    body = b"" if method in ("POST", "PUT", "BREW") else None
    received, answer = ask(served, path, body=body, method=method)
    assert received == status
    assert list(answer) == ["error"]
    assert re.search(message, answer["error"])


@pytest.mark.parametrize(
    ("model", "content", "message"),
    [
        ("toy", {"instances": ["a"], "signature_name": "no"}, '"no" not found in signature def'),
        ("toy", {"instances": [1]}, "values of type a string. Received: 1"),
        ("toy", {"instances": [["a"]]}, r"the shape \[any\]. Received: \[1, 1\]"),
        ("toy", {"instances": [{"b": "a"}]}, "object with the keys text"),
        ("toy", {"instances": ["a"] * 33}, "at most 32 rows. Received: 33"),
        ("toy", {"instances": ["a" * 10_001]}, "at most 10000 bytes. Received: 10001"),
        (
            "tiny",
            {"instances": ["a" * 11]},
            "^The source text must have at most 10 tokens. Received: 11$",
        ),
        ("tiny", {"instances": [{"text": "a"}], "signature_name": "score"}, "keys target, text"),
    ],
)
def test_what_a_signature_does_not_take_is_told(served, model, content, message):
    status, answer = predict(served, model, **content)
    assert status == 400
    assert re.search(message, answer["error"])
    assert not re.search("node|Traceback", answer["error"])


def test_ids_and_texts_have_one_limit(served):
    most = [3] * 11
    asked = {"signature_name": "token_ids"}
    assert predict(served, "tiny", instances=[most], **asked)[0] == 200
    error = {"error": "The input source_ids must have at most 11 ids in a row. Received: 12"}
    assert predict(served, "tiny", instances=[[*most, 3]], **asked) == (400, error)


def test_a_compressed_body_is_refused(served):
    head = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
    body = gzip.compress(b'{"instances": ["a"]}')
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    status, answer = asyncio.run(send(served.rest, request))
    assert status == 400
    assert b"Received: Content-Encoding gzip." in answer


def test_no_rows_are_no_error(served):
    columns = {"text": [], "score": []}
    assert predicted(served, "toy", inputs=[]) == {"outputs": columns}


def test_too_large_a_body_is_refused_before_it_is_read(served):
    status, answer = ask(served, "/v1/models/toy:predict", body=b" " * 100_001)
    assert status == 413
    assert "at most 100000 bytes" in answer["error"]


def test_a_full_queue_and_a_slow_model_are_told(models):
    limits = dataclasses.replace(LIMITS, queue=1, timeout=0.3)
    slow = [{"count": 2_000_000, "image_bytes": "a"}]
    with running({"odd": models["odd"]}, ModelSettings(limits=limits, xla=True)) as served:
        with ThreadPoolExecutor(8) as clients:
            asked = [clients.submit(predict, served, "odd", instances=slow) for _ in range(8)]
            answers = collections.Counter(request.result()[0] for request in asked)
        assert set(answers) == {429, 504}
        quick = [{"count": 1, "image_bytes": "a"}]
        end = time.monotonic() + 120
        while predict(served, "odd", instances=quick)[0] != 200:
            assert time.monotonic() < end


def test_metrics_count_and_name_no_strangers(served):
    predict(served, "toy", instances=["a"])
    predict(served, "stranger", instances=["a"])
    for path in ("/metrics", "/monitoring/prometheus/metrics"):
        with urllib.request.urlopen(f"http://127.0.0.1:{served.rest}{path}") as answer:
            text = answer.read().decode()
        counted = r'keras_attn_serving_requests_total\{api="rest",code="200",model="toy"\} (\S+)'
        assert float(re.search(counted, text)[1]) >= 1
        assert 'code="404",model=""' in text
        assert "stranger" not in text
        assert 'keras_attn_serving_batch_rows_count{model="toy"}' in text
        assert 'keras_attn_serving_waiting{model="toy"} 0.0' in text


def test_the_page_needs_nothing_from_outside(served):
    with urllib.request.urlopen(f"http://127.0.0.1:{served.rest}/") as answer:
        text, headers = answer.read().decode(), answer.headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["content-security-policy"]
    text = text.replace("http://www.w3.org/2000/svg", "")  # a name, which is not loaded
    assert not re.search(r"https?:|//[a-z]|src=|@import|innerHTML|eval\(", text)
