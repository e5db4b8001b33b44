"""Requests that no server should stumble over: for each kind what is sent, and what must come back.

Each maker takes a random generator and gives bytes for a connection, or for gRPC a request. The
server's limits are those of `conftest.LIMITS`; its models "toy" and "tiny".
"""

import json

import numpy as np

from tests.serving.conftest import LIMITS

PATH = "/v1/models/tiny:predict"


def http(body, path=PATH, method="POST", **headers):
    headers = {"Host": "127.0.0.1", "Content_Length": len(body)} | headers
    lines = "".join(
        f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items() if value != ""
    )
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def instances(*values, **more):
    return http(json.dumps({"instances": values, **more}).encode())


def letters(rng, most=11):
    return "".join(rng.choice(list("abcdefgé"), rng.integers(0, most)))


def nested(depth):
    return b'{"instances": ' + b"[" * depth + b'"a"' + b"]" * depth + b"}"


def noise(rng, size):
    return rng.integers(0, 256, size, np.uint8).tobytes()


def pick(rng, choices):
    return choices[rng.integers(len(choices))]


PATHS = {
    "/v1/models/../../etc/passwd:predict": 400,
    "/v1/models/..:predict": 404,
    "/v1/models/%2e%2e%2f%2e%2e%2fetc:predict": 404,
    "/v1/models/..%5c..%5cwindows:predict": 404,
    "/v1/models//etc/passwd:predict": 400,
    "/v1/models/tiny/versions/..:predict": 400,
    "/v1/models/tiny/versions/../../x:predict": 400,
    "/v1/models/tiny/versions/+1:predict": 400,
    "/v1/models/tiny%00:predict": 404,
    "/v1/models/tiny/labels/..%2f..:predict": 400,
    "/v1/models/file%3a%2f%2f%2fetc:predict": 404,
    "/static/../../etc/passwd": 404,
}


def path_trick(rng):
    return http(b'{"instances": ["a"]}', pick(rng, sorted(PATHS)))


REST = {
    "good": (lambda rng: instances(letters(rng)), 200),
    "wrong type": (lambda rng: instances(pick(rng, [7, 1.5, True, None, {"x": 1}])), 400),
    "wrong shape": (lambda rng: instances(*pick(rng, [[["a"]], [["a", "b"]], ["a", ["b"]]])), 400),
    "huge batch": (lambda rng: instances(*["a"] * int(rng.integers(33, 5000))), 400),
    "long text": (lambda rng: instances("a" * int(rng.integers(10_001, 90_000))), 400),
    "too many tokens": (lambda rng: instances("a" * int(rng.integers(11, 10_000))), 400),
    "too many ids": (
        lambda rng: instances([3] * int(rng.integers(12, 20_000)), signature_name="token_ids"),
        400,
    ),
    "ids below 0": (
        lambda rng: instances([3, -int(rng.integers(1, 2**31))], signature_name="token_ids"),
        400,
    ),
    "compressed": (lambda rng: http(noise(rng, 99), Content_Encoding="gzip"), 400),
    "invalid UTF-8": (lambda rng: http(b'{"instances": ["\xff' + noise(rng, 9) + b'"]}'), 400),
    "invalid UTF-8 in base64": (
        lambda rng: instances({"b64": "/w" * int(2 * rng.integers(1, 4))}),
        200,
    ),
    "NUL": (lambda rng: instances("a\0" * int(rng.integers(1, 5))), 200),
    "half of a surrogate pair": (lambda rng: instances("a\ud800"), 400),
    "bad base64": (lambda rng: instances({"b64": pick(rng, ["?", "a", "====", "é"])}), 400),
    "deep JSON": (lambda rng: http(nested(int(rng.integers(1_000, 40_000)))), 400),
    "no JSON": (lambda rng: http(noise(rng, int(rng.integers(1, 999))) + b"}"), 400),
    "cut JSON": (lambda rng: http(b'{"instances": ["a"]}'[: rng.integers(0, 19)]), 400),
    "no request": (lambda rng: http(pick(rng, [b"{}", b"[]", b"1", b'"a"', b"null"])), 400),
    "huge number": (
        lambda rng: http(b'{"instances": [1' + b"0" * int(rng.integers(400, 9_000)) + b"]}"),
        400,
    ),
    "huge body": (lambda rng: http(b" " * int(rng.integers(100_001, 200_000))), 413),
    "huge body announced": (
        lambda rng: http(b"", Content_Length=int(rng.integers(10**6, 2**62))),
        413,
    ),
    "wrong method": (
        lambda rng: http(b"", method=pick(rng, ["PUT", "DELETE", "PATCH", "BREW"])),
        400,
    ),
    "unknown signature": (lambda rng: instances("a", signature_name=letters(rng) + "x"), 400),
    "unknown model": (lambda rng: http(b"{}", f"/v1/models/{rng.integers(10**9)}:predict"), 404),
    "unknown version": (
        lambda rng: http(b"{}", f"/v1/models/tiny/versions/{rng.integers(2, 10**9)}:predict"),
        404,
    ),
    "path trick": (path_trick, (400, 404)),
    "bad content-length": (
        lambda rng: http(b"{}", Content_Length=pick(rng, ["-1", "x", "1, 2", "0x2"])),
        400,
    ),
    "bad chunk": (
        lambda rng: http(b"zz\r\n{}\r\n0\r\n\r\n", Transfer_Encoding="chunked", Content_Length=""),
        400,
    ),
    "no HTTP": (lambda rng: b"\x16\x03\x01" + noise(rng, 60) + b"\r\n\r\n", 400),
    "huge headers": (lambda rng: http(b"", X_Header="a" * int(rng.integers(70_000, 90_000))), 400),
    "slow body": (lambda rng: http(b"{", Content_Length=9), 408),
    "slow headers": (lambda rng: b"POST /v1/models/tiny:pre", "closed"),
}
SLOW = {"slow body", "slow headers"}
assert LIMITS.read_timeout < 1


def request_bytes(name="tiny", signature="", dtype=7, shape=(1,), strings=(b"a",)):
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    request = PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    tensor = request.inputs["text"]
    tensor.dtype = dtype
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.string_val.extend(strings)
    return request.SerializeToString()


GRPC = {
    "gRPC good": (lambda rng: request_bytes(strings=[letters(rng).encode()]), "OK"),
    "gRPC truncated": (lambda rng: request_bytes()[: -int(rng.integers(1, 9))], "INTERNAL"),
    "gRPC noise": (lambda rng: b"\xff" + noise(rng, 50), "INTERNAL"),
    "gRPC wrong type": (
        lambda rng: request_bytes(dtype=int(rng.integers(8, 200))),
        "INVALID_ARGUMENT",
    ),
    "gRPC false shape": (
        lambda rng: request_bytes(shape=(int(rng.integers(2**30, 2**60)),)),
        "INVALID_ARGUMENT",
    ),
    "gRPC wrong shape": (lambda rng: request_bytes(shape=(1, 1)), "INVALID_ARGUMENT"),
    "gRPC huge batch": (
        lambda rng: request_bytes(shape=(99,), strings=[b"a"] * 99),
        "INVALID_ARGUMENT",
    ),
    "gRPC invalid UTF-8": (lambda rng: request_bytes(strings=[b"\xff\0" + noise(rng, 3)]), "OK"),
    "gRPC huge message": (
        lambda rng: request_bytes(strings=[bytes(100_001)]),
        "RESOURCE_EXHAUSTED",
    ),
    "gRPC unknown model": (lambda rng: request_bytes(name="../" + letters(rng)), "NOT_FOUND"),
    "gRPC unknown signature": (lambda rng: request_bytes(signature="x"), "FAILED_PRECONDITION"),
}
