"""HTTP connections with a time limit of headers, JSON errors and half-closed connections."""

import asyncio
from typing import Any

import h11
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from keras_attn.serving.json_codec import encode_error
from keras_attn.serving.limits import Limits

_MOST_HEADER_BYTES = 64 << 10


class _Connection(h11.Connection):
    """Limits the number of chunks of a body, because each chunk takes time, whatever its size."""

    def __init__(self, most_header_bytes: int, most_chunks: int) -> None:
        super().__init__(h11.SERVER, most_header_bytes)
        self.most_chunks = most_chunks
        self.refusal: str | None = None
        self._chunks = 0

    def next_event(self) -> Any:
        """Counts the chunks of a body."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            if self._chunks > self.most_chunks:
                self.refusal = f"A body may have at most {self.most_chunks} chunks."
                raise h11.RemoteProtocolError(self.refusal)
        return event


class TimelyProtocol(H11Protocol):
    """Closes a connection whose request headers are not complete in time.

    uvicorn itself only closes idle connections after an answer.
    """

    limits = Limits()
    overloaded: ASGIApp
    _timer: asyncio.TimerHandle | None = None
    _has_ended = False  # the client, which sends no more data

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _Connection(_MOST_HEADER_BYTES, self.limits.chunks)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Starts the time limit of the first headers."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Reads data; starts the time limit when headers begin, stops it when they end."""
        full = max(len(self.connections), len(self.tasks)) >= self.limits.connections
        self.app = self.overloaded if full else self.config.loaded_app
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None:
            self._wait_for_headers()

    def eof_received(self) -> bool:
        """Keeps the connection of a client that waits for an answer."""
        self._has_ended = True
        return self._is_answering()

    def on_response_complete(self) -> None:
        """Begins the next request, if there is one."""
        super().on_response_complete()
        if self._has_ended and not self._is_answering():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuses data that is not HTTP with an error of the REST API."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = encode_error(self.conn.refusal or msg)
            headers = {
                "content-type": "application/json",
                "content-length": str(len(body)),
                "connection": "close",
            }
            response = h11.Response(status_code=400, headers=list(headers.items()))
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _wait_for_headers(self) -> None:
        self._timer = self.loop.call_later(self.limits.read_timeout, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def protocol(limits: Limits, overloaded: ASGIApp) -> type[TimelyProtocol]:
    """Returns the protocol with its limits.

    Args:
        limits: The limits of headers, connections and chunks.
        overloaded: Application that answers if there are too many connections.
    """
    options = {"limits": limits, "overloaded": staticmethod(overloaded)}
    return type("Protocol", (TimelyProtocol,), options)
