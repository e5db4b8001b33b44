"""HTTP connections whose clients must send their headers in time."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimelyProtocol(H11Protocol):
    """Closes a connection whose request headers are not complete in time.

    uvicorn itself watches only connections that have had an answer and are silent since.
    """

    header_timeout = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Starts to wait for the first headers."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Reads on; starts to wait where headers have begun, and stops where they are whole."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        self._timer = self.loop.call_later(self.header_timeout, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def protocol(header_timeout: float) -> type[TimelyProtocol]:
    """Returns the protocol with a time limit in seconds."""
    return type("Protocol", (TimelyProtocol,), {"header_timeout": header_timeout})
