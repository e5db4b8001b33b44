"""Connections that end, and requests that can be read in two ways."""

import json
import socket

import pytest

from keras_attn.serving import Limits, ModelSettings
from tests.serving.conftest import running
from tests.serving.hostile import http

pytestmark = pytest.mark.tensorflow

BODY = b'{"instances": ["a"]}'
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
STATUS = http(b"", "/v1/models/tiny", "GET")


def exchange(port, data, half_close=False):
    """Everything that the server sends until it closes, or for a while."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
        return received


def answer(served, request, **options):
    """Status and content of the only answer to what is sent."""
    ((status, content),) = answers(exchange(served.rest, request, **options))
    return status, content


def answers(received):
    """Status and content of each answer."""
    found = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        found.append((int(head.split()[1]), json.loads(received[:length])))
        received = received[length:]
    return found


@pytest.mark.parametrize(
    "request_bytes",
    [
        http(CHUNKED, Transfer_Encoding="chunked", Content_Length=len(BODY)),
        http(CHUNKED, Transfer_Encoding="Chunked", Content_Length=0),
        http(CHUNKED, path="/", method="GET", Transfer_Encoding="chunked", Content_Length=1),
    ],
)
def test_two_lengths_are_refused_and_nothing_is_read_behind_them(served, request_bytes):
    message = "Content-Length and Transfer-Encoding exclude each other."
    assert answer(served, request_bytes + STATUS) == (400, {"error": message})


def test_a_client_that_sends_nothing_more_gets_its_answers(served):
    request = http(BODY, "/v1/models/tiny:predict")
    status, content = answer(served, request, half_close=True)
    assert (status, list(content)) == (200, ["predictions"])
    found = answers(exchange(served.rest, request + STATUS + request, half_close=True))
    assert [status for status, _ in found] == [200, 200, 200]
    assert found[0] == found[2]


def test_half_a_request_and_the_end_is_closed(served):
    for data in (b"", b"POST /v1", http(b"{", Content_Length=9)):
        assert exchange(served.rest, data, half_close=True) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no host
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        http(b"{}", Content_Length="-1"),
        http(b"zz\r\n{}\r\n", Content_Length="", Transfer_Encoding="chunked"),
    ],
)
def test_what_is_no_http_is_refused_in_json(served, data):
    status, content = answer(served, data)
    assert (status, list(content)) == (400, ["error"])


def test_too_many_connections_are_told_in_json(models):
    settings = ModelSettings(limits=Limits(connections=2, read_timeout=5.0), xla=True)
    with running({"toy": models["toy"]}, settings) as served:
        idle = socket.create_connection(("127.0.0.1", served.rest), 10)
        with idle:
            found = answers(exchange(served.rest, http(b"", "/v1/models/toy", "GET")))
        assert found == [(503, {"error": "There are too many connections."})]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"instances": ' + b"[" * 65 + b'"a"' + b"]" * 65 + b"}", "nested too deeply"),
        (b'{"inputs": ' + b"[" * 40 + b"1" + b"]" * 40 + b"}", "nested too deeply"),
        (b'{"instances": ' + b"[" * 120 + b"]" * 120 + b"}", "at most 100 levels of nesting"),
        (b'{"instances": ' + b'{"a": ' * 200 + b"1" + b"}" * 200 + b"}", "at most 100 levels"),
        (b'{"instances": ["a"], "instances": ["b"]}', "duplicate key 'instances'"),
        (b'{"instances": [1' + b"0" * 5000 + b"]}", "a number has too many digits"),
        (b'{"instances": ["a"], "signature_name": "\\ud800"}', "not found in signature def"),
        (b'{"instances": ["\xed\xa0\x80"]}', "JSON Parse error"),
    ],
)
def test_bodies_that_are_refused(served, body, message):
    request = http(body, "/v1/models/tiny:predict")
    status, content = answer(served, request, half_close=True)
    assert status == 400
    assert message in content["error"]


def test_a_body_in_very_many_pieces_is_refused(served):
    pieces = b"1\r\n \r\n" * 5_000
    request = http(pieces, Content_Length="", Transfer_Encoding="chunked")
    assert answer(served, request) == (400, {"error": "A body may have at most 1024 chunks."})
    few = b"1\r\n \r\n" * 500 + CHUNKED
    request = http(few, "/v1/models/toy:predict", Content_Length="", Transfer_Encoding="chunked")
    assert answer(served, request, half_close=True)[0] == 200


@pytest.mark.parametrize("form", ["instances", "inputs"])
def test_rows_are_counted_before_they_are_looked_at(served, monkeypatch, form):
    monkeypatch.setattr("keras_attn.serving.rest.decode_inputs", None)
    body = b'{"%s": [%s]}' % (form.encode(), b",".join([b"[]"] * 30_000))
    request = http(body, "/v1/models/toy:predict")
    message = "A request may have at most 32 rows. Received: 30000."
    assert answer(served, request, half_close=True) == (400, {"error": message})


@pytest.mark.parametrize(
    ("version", "status"),
    [("1", 200), ("0" * 40 + "1", 200), ("0" * 40, 404), ("9" * 30, 400), ("9" * 6_000, 400)],
)
def test_versions_in_addresses(served, version, status):
    request = http(BODY, f"/v1/models/tiny/versions/{version}:predict")
    assert answer(served, request, half_close=True)[0] == status
