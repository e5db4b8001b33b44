"""TensorFlow Serving's REST API, the metrics and the demo page, as an ASGI application."""

import asyncio
import contextlib
import json
import re
import time
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

from keras_attn.model_versions import LARGEST_VERSION
from keras_attn.serving.errors import Code, RequestError, invalid
from keras_attn.serving.hosts import AllowedHosts
from keras_attn.serving.json_codec import (
    VALUES_AT_ONCE,
    decode_inputs,
    encode_error,
    encode_outputs,
    parse_request,
)
from keras_attn.serving.metrics import CONTENT_TYPE
from keras_attn.serving.model_server import ModelServer, signature_of
from keras_attn.serving.page import page

_MODEL = r"/v1/models/([^/:]+)(?:/versions/([0-9]+)|/labels/([^/:]+))?"
_PREDICT = re.compile(_MODEL + ":(classify|regress|predict)")
_STATUS = re.compile(_MODEL + "(/metadata)?")
_TOO_LARGE, _TOO_SLOW = 413, 408
_LARGE_BODY = 64 << 10  # bytes; larger bodies would delay other requests while they are parsed
_LINGER_SECONDS = 1.0
_JSON = {"content-type": "application/json"}


class _Address(NamedTuple):
    """The parts of a request's path."""

    name: str
    version: int | None
    label: str
    action: str


class _HttpError(Exception):
    """An error with an HTTP status of its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Refusal(Response):
    """Answers before the body has been read, and then reads the rest of the body for a while.

    A connection that is closed with unread bytes is reset, and the answer may be lost.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})


def rest_application(server: ModelServer, hosts: AllowedHosts) -> ASGIApp:
    """Returns the ASGI application.

    Args:
        server: The models to serve.
        hosts: The host names that requests may use.
    """
    api = _Api(server)
    application = Starlette(
        routes=[
            Route("/", api.page),
            Route("/page/models.json", api.page_models),
            Route("/metrics", api.metrics),
            Route("/monitoring/prometheus/metrics", api.metrics),
            Route("/v1/{path:path}", api.models, methods=["GET", "POST"]),
        ],
        exception_handlers={HTTPException: _http_error},
    )

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope["headers"]}
        status, reason = 403, hosts.refused(scope["headers"])
        if {b"content-length", b"transfer-encoding"} <= names:
            # The end of the body would be ambiguous, which allows request smuggling.
            status, reason = 400, "Content-Length and Transfer-Encoding exclude each other."
        answer = _refusal(status, reason) if reason else application
        await answer(scope, receive, send)

    return checked


async def overloaded(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers if there are too many connections."""
    await _refusal(503, "There are too many connections.")(scope, receive, send)


class _Api:
    def __init__(self, server: ModelServer) -> None:
        self._server = server

    async def page(self, _: Request) -> Response:
        return Response(page().html, headers=page().headers)

    async def page_models(self, _: Request) -> Response:
        return await _answered(self._facts(), self._server.log)

    async def metrics(self, _: Request) -> Response:
        return Response(self._server.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        path = request.scope["raw_path"].decode("latin-1")
        if request.method == "POST" and (match := _PREDICT.fullmatch(path)):
            return await self._counted(_address(match), request)
        if request.method == "GET" and (match := _STATUS.fullmatch(path)):
            return await _answered(self._describe(_address(match)), self._server.log)
        return _error(400, f"Malformed request: {request.method} {path:.200}")

    async def _counted(self, address: _Address, request: Request) -> Response:
        start = time.perf_counter()
        response = await _answered(self._predict(address, request), self._server.log)
        self._server.count(address.name, "rest", str(response.status_code), start)
        return response

    async def _predict(self, address: _Address, request: Request) -> bytes:
        limits = self._server.limits
        try:
            async with asyncio.timeout(limits.read_timeout):
                body = await _read(request, limits.body_bytes)
        except TimeoutError:
            message = f"The body was not received within {limits.read_timeout:.3g} s."
            raise _HttpError(_TOO_SLOW, message) from None
        if address.action != "predict":
            raise RequestError(
                Code.UNIMPLEMENTED, f"{address.action} is not supported, only predict."
            )
        which = (address.name, _number(address), address.label)
        self._server.version(*which)  # before the body is parsed
        if len(body) > _LARGE_BODY:
            parsed = await asyncio.to_thread(parse_request, body)
        else:
            parsed = parse_request(body)
        limits.check_rows(parsed.most_rows)
        version = self._server.version(*which)
        unknown = (
            f'Serving signature name: "{_in_one_line(parsed.signature)}" not found in signature def'
        )
        signature = signature_of(version, parsed.signature, invalid(unknown))
        inputs = decode_inputs(parsed, signature)
        outputs = await self._server.predict(version, parsed.signature, inputs)
        if sum(array.size for array in outputs.values()) > VALUES_AT_ONCE:
            return await asyncio.to_thread(encode_outputs, outputs, parsed.by_rows)
        return encode_outputs(outputs, parsed.by_rows)

    async def _facts(self) -> bytes:
        models = []
        for name in self._server.models:
            version = self._server.version(name)
            facts = await asyncio.to_thread(lambda version=version: version.page_facts)
            models.append({"name": name} | facts)
        return json.dumps(models).encode()

    async def _describe(self, address: _Address) -> bytes:
        which = (address.name, _number(address), address.label)
        if not address.action:
            return _to_json(self._server.status(*which)).encode()
        response = self._server.metadata(*which)
        signatures = SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return (
            f'{{\n"model_spec": {_to_json(response.model_spec)},\n'
            f'"metadata": {{"signature_def": {_to_json(signatures)}}}\n}}\n'
        ).encode()


def _address(match: re.Match) -> _Address:
    name, version, label, action = match.groups(default="")
    return _Address(
        urllib.parse.unquote(name), version and int(version.lstrip("0")[:25] or 0), label, action
    )


def _number(address: _Address) -> int | None:
    if address.version == "":
        return None
    if address.version > LARGEST_VERSION:
        raise invalid("Failed to convert version to numeric: it is too large.")
    return address.version


async def _read(request: Request, most: int) -> bytes:
    chunks, size = [], 0
    announced = request.headers.get("content-length", "0")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise invalid(f"A body must not be compressed. Received: Content-Encoding {encoding:.20}.")
    too_large = _HttpError(_TOO_LARGE, f"The body may have at most {most} bytes.")
    if int(announced) > most:
        raise too_large
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise too_large
        chunks.append(chunk)
    return b"".join(chunks)


async def _answered(body: Awaitable[bytes], log: Callable[[str], None]) -> Response:
    try:
        return _json(await body, 200)
    except RequestError as error:
        return _error(error.code.http_status, str(error))
    except _HttpError as error:
        return _refusal(error.status, str(error))
    except ClientDisconnect:
        return _error(Code.CANCELLED.http_status, "The client closed the connection.")
    except Exception as error:  # a mistake in the server, which goes on
        log(f"error in the server: {error!r}")
        return _error(Code.INTERNAL.http_status, "An error in the server.")


def _refusal(status: int, message: str) -> _Refusal:
    return _Refusal(encode_error(message), status, _JSON | {"connection": "close"})


def _json(body: bytes, status: int) -> Response:
    return Response(body, status, _JSON)


def _error(status: int, message: str) -> Response:
    return _json(encode_error(message), status)


def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:  # as TensorFlow Serving has it
        return _error(400, f"Malformed request: {request.method:.20} {request.url.path:.200}")
    return _error(error.status_code, f"Not found: {request.url.path:.200}")


def _to_json(message: object) -> str:
    return json_format.MessageToJson(
        message, always_print_fields_with_no_presence=True, preserving_proto_field_name=True
    )


def _in_one_line(name: str) -> str:
    return " ".join(f"{name:.100}".split())
