"""Workers on several machines, and their start within a time limit."""

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import keras_attn
from keras_attn.documents import parse_json
from keras_attn.validation import UserError, is_port, require

# sysexits.h: a failure that may be gone when tried again.
TRY_AGAIN = 75
_VARIABLE = "TF_CONFIG"
_HELLO = b"keras_attn worker "
_GO = b"go\n"
_MOST = 2048  # bytes of a line that workers send each other
_SECONDS_BETWEEN_CALLS = 0.5
_SECONDS_OF_PROBES = (0.0, 0.05, 0.2)
_SECONDS_TO_ANSWER = 2.0
_SECONDS_TO_TELL = 3.0
# How TensorFlow's messages list workers that it does not hear, and name a node of a graph.
_TASK = re.compile(r"^(?:Task )?/job:(chief|worker)/(?:replica:\d+/)?task:(\d+)\b(?!/)", re.M)
_GRAPH_NODE = re.compile(r"\{\{.*?\}\}")


class WorkerLost(SystemExit):
    """A worker did not join, or was lost: all must end and be restarted together.

    Ends the process, if nothing catches it, with status 75 after reporting why.

    Args:
        reason: One sentence for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(TRY_AGAIN)
        self.reason = reason
        print(f"keras-attn: {reason}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cluster:
    """The workers of a training, and the index of this process.

    Attributes:
        workers: Addresses `host:port`; the first is the chief, which writes the run folder.
        index: Index of this worker.
        chiefs: Number of the first ones that TensorFlow names "chief".

    Raises:
        UserError: An address is malformed or repeated, or `index` is out of range.
    """

    workers: tuple[str, ...]
    index: int
    chiefs: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        for address in self.workers:
            host, _, port = address.rpartition(":")
            require(
                bool(host) and is_port(port), "A worker must be given as host:port.", worker=address
            )
        require(
            len(set(self.workers)) == len(self.workers),
            "Every worker must have an address of its own.",
            workers=list(self.workers),
        )
        require(
            0 <= self.index < len(self.workers),
            f"`worker_index` must be one of the {len(self.workers)} workers, counted from 0.",
            worker_index=self.index,
        )

    @property
    def is_chief(self) -> bool:
        """Whether this is the worker that writes."""
        return self.index == 0

    def named(self, indices: Iterable[int]) -> str:
        """Workers by index and address."""
        return ", ".join(f"{index} ({self.workers[index]})" for index in sorted(indices))

    def to_environment(self) -> None:
        """Sets TF_CONFIG, which TensorFlow and `from_environment` read."""
        task = {"type": "worker", "index": self.index}
        cluster = {"worker": list(self.workers)}
        os.environ[_VARIABLE] = json.dumps({"cluster": cluster, "task": task})

    @classmethod
    def from_environment(cls) -> "Cluster | None":
        """Reads the cluster of TF_CONFIG, or returns `None` if that is not set.

        A task of the type "chief" is the first worker.

        Raises:
            UserError: It is malformed, or has tasks of other types than "chief" and "worker".
        """
        text = os.environ.get(_VARIABLE)
        if not text:
            return None
        try:
            config = parse_json(text, _VARIABLE)
            addresses, task = dict(config["cluster"]), config["task"]
            kind, index = task["type"], int(task["index"])
            chiefs, workers = addresses.pop("chief", []), addresses.pop("worker", [])
            found = cls(
                (*map(str, chiefs), *map(str, workers)),
                index + (len(chiefs) if kind == "worker" else 0),
                len(chiefs),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            if isinstance(error, UserError) and not str(error).startswith(_VARIABLE):
                raise
            shown = text if len(text) <= 1000 else f"{text[:1000]}…"
            raise UserError(
                'TF_CONFIG must be JSON such as {"cluster": {"worker": ["host:port", …]}, '
                f'"task": {{"type": "worker", "index": 0}}}}. Received: {shown!r}.'
            ) from error
        others = [*addresses, *({kind} - {"chief", "worker"})]
        require(
            not others, 'TF_CONFIG may have the task types "chief" and "worker".', task_types=others
        )
        return found


def wait_for_all(cluster: Cluster, seconds: float) -> None:
    """Returns in all workers at about the same time, when all have started.

    TensorFlow's own start waits forever and cannot be interrupted. The workers connect to the
    chief's address, which is free again afterwards. A worker that cannot join ends all.

    Args:
        cluster: The workers.
        seconds: Seconds to wait for the others.

    Raises:
        UserError: The chief's port is in use, two processes call themselves the same worker, or
            one has another version of this package.
        WorkerLost: A worker did not join in time, or its port is in use; the chief and that worker
            name it.
    """
    deadline = time.monotonic() + seconds
    if cluster.is_chief:
        _receive(cluster, deadline, seconds)
    else:
        _call(cluster, deadline, seconds)


def why_lost(cluster: Cluster, message: str) -> str:
    """Names the worker that was lost, in one line.

    Args:
        cluster: The workers.
        message: TensorFlow's message. If it names no worker, all are connected to.
    """
    silent = {
        int(number) + (cluster.chiefs if kind == "worker" else 0)
        for kind, number in _TASK.findall(message)
    }
    silent = {index for index in silent - {cluster.index} if index < len(cluster.workers)}
    if silent:
        return f"Worker {cluster.named(silent)} gives no sign of life."
    away = _out_of_reach(cluster)
    if away:
        return f"Worker {cluster.named(away)} cannot be reached."
    reason = _GRAPH_NODE.sub("", message).strip().partition("\n")[0][:200]
    return f"The work with the other workers failed, though all can be reached: {reason}"


@contextlib.contextmanager
def ended_by_alarm(seconds: float, reason: str) -> Iterator[None]:
    """Ends the process by SIGALRM after a time, even if Python cannot run (status 142).

    Args:
        seconds: The time.
        reason: One sentence for the user, which a shell prints then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    script = 'sleep "$1" && printf "keras-attn: %s\\n" "$2" >&2; kill -ALRM "$3"'
    arguments = [f"{seconds:.3f}", reason, str(os.getpid())]
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    shell = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    signal.setitimer(signal.ITIMER_REAL, seconds + _SECONDS_TO_TELL)  # should the shell be gone
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _out_of_reach(cluster: Cluster) -> set[int]:
    def answers(index: int) -> bool:
        try:
            socket.create_connection(_place(cluster, index), _SECONDS_TO_ANSWER).close()
        except OSError:
            return False
        return True

    others = [index for index in range(len(cluster.workers)) if index != cluster.index]
    with ThreadPoolExecutor(len(others)) as pool:
        found = pool.map(answers, others)
        return {index for index, there in zip(others, found, strict=True) if not there}


def _place(cluster: Cluster, index: int) -> tuple[str, int]:
    host, _, port = cluster.workers[index].rpartition(":")
    return host.strip("[]"), int(port)


class _Hello(NamedTuple):
    """The message of a worker to the chief.

    Attributes:
        index: Its index.
        version: Of this package.
        trouble: Why its own port cannot be used; empty if it can.
    """

    index: int
    version: str = keras_attn.__version__
    trouble: str = ""


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _receive(cluster: Cluster, deadline: float, seconds: float) -> None:
    others, here, connections = range(1, len(cluster.workers)), {}, []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_server(cluster))

        def next_caller(deadline: float) -> tuple[socket.socket, _Hello | None]:
            server.settimeout(max(deadline - time.monotonic(), 0.001))
            connection = stack.enter_context(server.accept()[0])
            return connection, _heard(connection)

        try:
            while len(here) < len(others):
                try:
                    connection, hello = next_caller(deadline)
                except TimeoutError:
                    names = cluster.named(set(others) - here.keys())
                    raise WorkerLost(f"Worker {names} did not come within {seconds:g} s.") from None
                if hello is None or hello.index not in others:
                    continue
                connections.append(connection)
                _check(cluster, hello, here.get(hello.index))
                here[hello.index] = connection
        except (UserError, WorkerLost) as error:
            kind, reason = type(error).__name__, getattr(error, "reason", str(error))
            line = _line({"kind": kind, "reason": reason})
            _answer(connections, line)
            last = min(deadline, time.monotonic() + _SECONDS_TO_TELL)
            with contextlib.suppress(TimeoutError):  # those who are on their way
                while True:
                    _answer([next_caller(last)[0]], line)
            raise
        _answer(here.values(), _GO)


def _check(cluster: Cluster, hello: _Hello, before: socket.socket | None) -> None:
    """Raises if a worker cannot be one of them."""
    name = cluster.named([hello.index])
    if hello.trouble:
        raise WorkerLost(f"Worker {name} cannot join: its port is {hello.trouble}.")
    require(
        hello.version == keras_attn.__version__,
        f"All workers must have the same version of keras_attn; worker {name} has another.",
        chief=keras_attn.__version__,
        worker=hello.version,
    )
    require(
        before is None or _is_closed(before),  # a worker may be started again
        f"Two processes call themselves worker {name}; each needs an index of its own.",
        worker_index=hello.index,
    )


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(5.0)


def _answer(connections: Iterable[socket.socket], line: bytes) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(line)
            connection.recv(1)  # nothing: the other side closes first, and the port is free


def _server(cluster: Cluster) -> socket.socket:
    address = cluster.workers[cluster.index]
    port = int(address.rpartition(":")[2])
    try:
        return socket.create_server(("", port), backlog=len(cluster.workers))
    except OSError as error:
        raise UserError(
            f"The chief's port must be free: {error.strerror}. Received: {address!r}."
        ) from error


def _heard(connection: socket.socket) -> _Hello | None:
    """The message of a worker, or `None` for another caller."""
    connection.settimeout(5.0)
    with contextlib.suppress(OSError, ValueError, TypeError):
        line = connection.makefile("rb").readline(_MOST)
        if line.startswith(_HELLO):
            return _Hello(**parse_json(line.removeprefix(_HELLO).decode(), "a worker"))
    return None


def _trouble(cluster: Cluster) -> str:
    """Why this worker's port cannot be used."""
    trouble = ""
    for wait in _SECONDS_OF_PROBES:  # another process of this index may try it at the same moment
        time.sleep(wait)
        try:
            socket.create_server(("", _place(cluster, cluster.index)[1])).close()
        except OSError as error:
            trouble = "in use" if error.errno == errno.EADDRINUSE else str(error.strerror)
        else:
            return ""
    return trouble


def _call(cluster: Cluster, deadline: float, seconds: float) -> None:
    hello = _Hello(cluster.index, trouble=_trouble(cluster))
    chief, answer = _place(cluster, 0), b""
    while (left := deadline - time.monotonic()) > 0 and not answer:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(chief, timeout=left) as connection,
        ):
            connection.sendall(_HELLO + _line(hello._asdict()))
            answer = connection.makefile("rb").readline(_MOST)
        if not answer:
            time.sleep(_SECONDS_BETWEEN_CALLS)
    if answer == _GO:
        return
    kind, reason = "", ""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        content = parse_json(answer.decode(), "the chief")
        kind, reason = str(content["kind"]), str(content["reason"])
    if reason:
        raise UserError(reason) if kind == "UserError" else WorkerLost(reason)
    if hello.trouble:
        name = cluster.named([cluster.index])
        raise WorkerLost(f"Worker {name} cannot join: its port is {hello.trouble}.")
    raise WorkerLost(
        f"The chief ({cluster.workers[0]}) and all workers did not come within {seconds:g} s."
    )
