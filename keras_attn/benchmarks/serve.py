"""Load test of `keras-attn serve` in a separate process on this machine."""

import asyncio
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.benchmarks.http_load import Connection, post, put_load
from keras_attn.export import CppSavedModel
from keras_attn.export.golden import read_golden
from keras_attn.model_versions import latest_version
from keras_attn.processes import python_command, python_environment
from keras_attn.validation import UserError

SIGNATURE = "serving_default"
_START_SECONDS = 120
_WARM_UP_SECONDS = 1.0


def measure_serving(
    folder: str | Path,
    clients: Sequence[int],
    threads: Sequence[int],
    seconds: float,
    direct_calls: int,
) -> Iterator[dict[str, Any]]:
    """Measures a model under load, with and without batches of several requests.

    Args:
        folder: A model written by `keras-attn export`, whose golden examples are the requests.
        clients: Numbers of clients at the same time.
        threads: Numbers of batches at the same time.
        seconds: Duration of each measurement.
        direct_calls: Calls to measure the overhead of REST; 0 for none.

    Yields:
        Requests per second and latencies of each measurement.
    """
    folder = Path(folder)
    inputs = _rows(latest_version(folder))
    requests = [_request(row) for row in inputs]
    for batched in (False, True):
        for count in threads:
            setting = {"batching": batched, "threads": count}
            options = ["--batch-threads", str(count)]
            with _server(folder, [*options, *([] if batched else ["--batch-rows", "1"])]) as port:
                for number in clients:
                    asyncio.run(put_load(port, requests, number, _WARM_UP_SECONDS))
                    load = asyncio.run(put_load(port, requests, number, seconds))
                    yield {"model": folder.name, "clients": number, **setting, **load.figures()}
    if direct_calls:
        with _server(folder, ["--batch-threads", "1"]) as port:  # all cores, as the direct call
            yield {"model": folder.name, **_measure_overhead(folder, inputs, port, direct_calls)}


def _measure_overhead(
    folder: Path, inputs: list[dict[str, Any]], port: int, calls: int
) -> dict[str, Any]:
    """The same call by REST and directly, in turn, so that other load affects both."""
    direct: list[float] = []
    served: list[float] = []

    async def measure() -> None:
        with CppSavedModel(folder) as model:
            connection = await Connection.open(port)
            for call in range(-len(inputs), calls):
                row = inputs[call % len(inputs)]
                arrays = {name: np.array([value]) for name, value in row.items()}
                request = _request(row)
                start = time.perf_counter()
                model.run(SIGNATURE, arrays)
                between = time.perf_counter()
                await connection.ask(request)
                if call >= 0:
                    direct.append(between - start)
                    served.append(time.perf_counter() - between)
            await connection.close()

    asyncio.run(measure())
    differences = np.array(served) - np.array(direct)
    return {
        "calls": calls,
        "direct_p50_ms": round(1000 * float(np.median(direct)), 3),
        "rest_p50_ms": round(1000 * float(np.median(served)), 3),
        "overhead_p50_ms": round(1000 * float(np.median(differences)), 3),
    }


def _rows(version_folder: Path) -> list[dict[str, Any]]:
    """The rows of the golden examples, with the value of each input."""
    rows = []
    for signature, inputs, _ in read_golden(version_folder).examples:
        if signature == SIGNATURE:
            columns = [[_plain(value) for value in array.tolist()] for array in inputs.values()]
            rows += [dict(zip(inputs, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _request(row: dict[str, Any]) -> bytes:
    return post("/v1/models/model:predict", json.dumps({"instances": [row]}).encode())


@contextlib.contextmanager
def _server(folder: Path, options: list[str]) -> Iterator[int]:
    """Starts a server on a free port, and stops it."""
    command = python_command("keras_attn", "serve", f"model={folder}")
    command += ["--rest-port", "0", "--grpc-port", "0", *options]
    environment = python_environment(PYTHONUNBUFFERED="1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield _port(process)
        finally:
            process.terminate()
            process.wait(_START_SECONDS)


def _port(process: subprocess.Popen) -> int:
    for line in process.stdout:
        if line.startswith("REST"):
            return int(line.rstrip("/\n").rpartition(":")[2])
    raise UserError(f"The server did not start. Received: status={process.wait()}.")
