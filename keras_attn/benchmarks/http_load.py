"""HTTP load from many clients at once, with little overhead of the clients.

Every client has one connection, sends its next request after the answer to the last, and stops when
the time is over. Only servers on this machine are supported.
"""

import asyncio
import dataclasses
import itertools
import time
from collections.abc import Sequence

import numpy as np

_HOST = "127.0.0.1"
_ANSWER_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Load:
    """Measurements of many requests.

    Attributes:
        seconds: Time from the first request to the last answer.
        latencies: Seconds of each request with status 200.
        failed: Number of other requests.
    """

    seconds: float
    latencies: np.ndarray
    failed: int

    def figures(self) -> dict[str, float]:
        """Returns requests per second, and the median and 99th percentile of latencies in ms."""
        p50, p99 = np.percentile(self.latencies, [50, 99]) if len(self.latencies) else (0, 0)
        return {
            "requests_per_second": round(len(self.latencies) / self.seconds, 1),
            "p50_ms": round(1000 * p50, 3),
            "p99_ms": round(1000 * p99, 3),
            "requests": len(self.latencies),
            "failed": self.failed,
        }


def post(path: str, body: bytes) -> bytes:
    """Returns the bytes of a request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {_HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


class Connection:
    """A persistent connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connects to a port of this machine."""
        return cls(*await asyncio.open_connection(_HOST, port))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Sends a request, and returns the status and the body of the answer."""
        self._writer.write(request)
        async with asyncio.timeout(_ANSWER_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").lower().split("\r\n")
            length = next(line for line in lines if line.startswith("content-length:"))
            body = await self._reader.readexactly(int(length.partition(":")[2]))
        return int(lines[0].split()[1]), body

    async def close(self) -> None:
        """Closes the connection."""
        self._writer.close()
        await self._writer.wait_closed()


async def put_load(
    port: int, requests: Sequence[bytes], clients: int, seconds: float, most: int | None = None
) -> Load:
    """Sends requests from a number of clients.

    Args:
        port: A port of this machine.
        requests: Requests made by `post`, sent in turn.
        clients: Number of connections.
        seconds: Time after which no more requests are sent.
        most: Largest number of requests.
    """
    latencies: list[float] = []
    failed = 0
    turns = itertools.islice(itertools.cycle(requests), most)
    start = time.perf_counter()

    async def client() -> None:
        nonlocal failed
        connection = await Connection.open(port)
        try:
            while time.perf_counter() - start < seconds:
                request = next(turns, None)
                if request is None:
                    return
                sent = time.perf_counter()
                status, _ = await connection.ask(request)
                if status == 200:
                    latencies.append(time.perf_counter() - sent)
                else:
                    failed += 1
        finally:
            await connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(time.perf_counter() - start, np.array(latencies), failed)
