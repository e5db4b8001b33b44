"""A server of both APIs in one event loop, from its start to its shutdown."""

import asyncio
import contextlib
import dataclasses
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import grpc
import uvicorn

from keras_attn.renamed import renamed_arguments
from keras_attn.serving.grpc_services import WholeMessages, add_services
from keras_attn.serving.hosts import AllowedHosts
from keras_attn.serving.http_protocol import protocol
from keras_attn.serving.model_server import ModelServer, ModelSettings
from keras_attn.serving.rest import overloaded, rest_application
from keras_attn.validation import UserError

_KEEP_ALIVE_SECONDS = 75


@dataclasses.dataclass(frozen=True)
class Ports:
    """Addresses on which a server listens.

    Attributes:
        host: Address of this machine on which it listens.
        rest: Port of the REST API; 0 for a free port.
        grpc: Port of gRPC; 0 for a free port.
        allowed_hosts: Additional host names that requests over HTTP may use, see
            `AllowedHosts`.

    Examples:
        >>> ports = Ports(host="0.0.0.0", allowed_hosts=("reviews.example.org",))
        >>> ports.rest, ports.grpc
        (8501, 8500)
        >>> server = Server({"reviews": "exported/reviews"}, ports)
    """

    host: str = "127.0.0.1"
    rest: int = 8501
    grpc: int = 8500
    allowed_hosts: tuple[str, ...] = ()


class Server:
    """A server with the REST and gRPC APIs.

    Args:
        folders: The models' folders by name; each contains a folder for each version.
        ports: Addresses on which it listens.
        settings: Settings of running models.
        log: Called with each line of the server's log.

    Attributes:
        models: The models.
        ports: Addresses on which it listens; after the start with the actual ports.

    Examples:
        >>> import asyncio, requests
        >>> async def ask(*texts):
        ...     server = Server({"reviews": "exported/reviews"}, Ports(rest=0, grpc=0))
        ...     await server.start()
        ...     url = f"http://127.0.0.1:{server.ports.rest}/v1/models/reviews:predict"
        ...     answer = await asyncio.to_thread(requests.post, url, json={"instances": texts})
        ...     await server.stop()
        ...     return [row["label"] for row in answer.json()["predictions"]]
        >>> asyncio.run(ask("good film", "bad film"))
        ['good', 'bad']
    """

    @renamed_arguments(tell="log")
    def __init__(
        self,
        folders: Mapping[str, str | Path],
        ports: Ports | None = None,
        settings: ModelSettings | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        settings = settings or ModelSettings()
        self.ports = ports or Ports()
        self.models = ModelServer(folders, settings, log)
        self._limits = settings.limits
        self._http: _HttpServer | None = None
        self._http_task: asyncio.Task | None = None
        self._grpc: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Loads the models, then listens.

        Raises:
            UserError: A model cannot be loaded, or a port is taken.
        """
        listening = _listen(self.ports.host, self.ports.rest)
        with contextlib.ExitStack() as undo:
            undo.callback(listening.close)
            await self.models.open()
            grpc_port = await self._start_grpc()
            undo.pop_all()
        self.ports = dataclasses.replace(
            self.ports, rest=listening.getsockname()[1], grpc=grpc_port
        )
        config = uvicorn.Config(
            rest_application(self.models, AllowedHosts(self.ports.host, self.ports.allowed_hosts)),
            http=protocol(self._limits, overloaded),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(self._limits.timeout) + 1,
        )
        self._http = _HttpServer(config)
        self._http_task = asyncio.create_task(self._http.serve([listening]))
        while not self._http.started and not self._http_task.done():
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Refuses new requests, finishes running ones, and frees the models."""
        if self._http is not None:
            self._http.should_exit = True
            grace = self._limits.timeout
            await asyncio.gather(self._http_task, self._grpc.stop(grace))
        await self.models.close()

    async def _start_grpc(self) -> int:
        options = {
            "grpc.max_receive_message_length": self._limits.body_bytes,
            "grpc.max_send_message_length": -1,
            "grpc.so_reuseport": 0,  # a used port is an error
        }
        self._grpc = grpc.aio.server(
            interceptors=[WholeMessages()],
            options=list(options.items()),
            maximum_concurrent_rpcs=self._limits.connections,
        )
        add_services(self.models, self._grpc)
        host, port = self.ports.host, self.ports.grpc
        try:
            bound = self._grpc.add_insecure_port(
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            )
        except RuntimeError:
            raise _taken(host, port) from None
        await self._grpc.start()
        return bound


async def serve_until_told(server: Server, started: Callable[[Server], None]) -> None:
    """Serves until SIGTERM or SIGINT.

    Args:
        server: The server to start and stop.
        started: Called when it listens.

    Raises:
        UserError: The server cannot be started.

    Examples:
        >>> import asyncio, signal
        >>> def started(server):
        ...     print("serving", *server.models.models)
        ...     signal.raise_signal(signal.SIGINT)  # what Ctrl+C does
        >>> server = Server({"reviews": "exported/reviews"}, Ports(rest=0, grpc=0))
        >>> asyncio.run(serve_until_told(server, started))
        serving reviews
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    starting = asyncio.create_task(server.start())
    stopping = asyncio.create_task(told.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    await starting  # a start is not interrupted while a model is loaded
    if not told.is_set():
        started(server)
        await stopping
    await server.stop()


class _HttpServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to `serve_until_told`."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError):
        raise _taken(host, port) from None
    # Accepted connections inherit it; asyncio does not set it for sockets without a protocol.
    # Without it an answer's body waits 40 ms until the client acknowledges its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listening


def _taken(host: str, port: int) -> UserError:
    return UserError(
        f"The server cannot listen: the port is used or the address is not of this machine. "
        f"Received: host={host!r}, port={port}."
    )
