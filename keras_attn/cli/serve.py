"""Serve exported models on this machine, with TensorFlow Serving's API: for development.

A development server, without authentication or encryption, in one process. For production use
TensorFlow Serving, which serves the same folders to the same clients.

The highest version of each model is served; a higher version that appears in its folder replaces it
without failed requests. A page to try the models is at http://127.0.0.1:8501/, metrics are at
/metrics. SIGTERM or Ctrl-C finishes running requests and exits with status 0.

examples:
  keras-attn serve g2p=saved_models/g2p_en
  keras-attn serve en-de=exported/en-de en-fr=exported/en-fr --rest-port 8501 --grpc-port 8500
  curl http://127.0.0.1:8501/v1/models/g2p
  curl -d '{"instances": ["transformer"]}' http://127.0.0.1:8501/v1/models/g2p:predict
"""

import argparse
import importlib.util
import os
import re
import sys
from pathlib import Path

from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError, require, require_positive

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MOST_THREADS = 1024  # of this process
_MODULES = ("grpc", "prometheus_client", "starlette", "tensorflow_serving", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `serve`."""
    add = parser.add_argument
    add(
        "models",
        nargs="+",
        metavar="NAME=DIR",
        help="name of a model, and the folder of its versions",
    )
    add(
        "--rest-port", type=int, default=8501, metavar="N", help="0 for a free port (default: 8501)"
    )
    add(
        "--grpc-port", type=int, default=8500, metavar="N", help="0 for a free port (default: 8500)"
    )
    add(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: only this machine)",
    )
    add(
        "--allowed-hosts",
        nargs="+",
        default=[],
        metavar="NAME",
        help="additional names allowed in Host and Origin of requests; '*' for all (see "
        "docs/serving.md)",
    )
    add(
        "--poll", type=float, default=2.0, metavar="S", help="look for versions every S seconds (2)"
    )
    add("--xla", action="store_true", help="enable XLA, for models exported with --jit")
    add = parser.add_argument_group("batching of simultaneous requests").add_argument
    add(
        "--batch-rows",
        type=int,
        default=64,
        metavar="N",
        help="most rows of a batch; 1 for no batching (default: 64)",
    )
    add(
        "--batch-delay",
        type=float,
        default=0.0,
        metavar="MS",
        help="wait for more requests (default: 0)",
    )
    add(
        "--batch-threads",
        type=int,
        default=min(2, os.cpu_count() or 1),
        metavar="N",
        help="batches of a model at the same time; they share the cores (default: 2)",
    )
    add = parser.add_argument_group("limits").add_argument
    add(
        "--max-body",
        type=int,
        default=4 << 20,
        metavar="BYTES",
        help="most bytes of a request (4 MiB)",
    )
    add(
        "--max-rows",
        type=int,
        default=256,
        metavar="N",
        help="most rows of a request (default: 256)",
    )
    add(
        "--max-text",
        type=int,
        default=1 << 20,
        metavar="BYTES",
        help="most bytes of a text or image (1 MiB)",
    )
    add(
        "--max-queue",
        type=int,
        default=512,
        metavar="N",
        help="most waiting requests (default: 512)",
    )
    add(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="time limit of an answer (default: 30)",
    )
    add(
        "--read-timeout",
        type=float,
        default=10.0,
        metavar="S",
        help="time limit of reading a request (default: 10)",
    )


def run(options: argparse.Namespace) -> None:
    """Serves until a signal stops it."""
    folders = _folders(options.models)
    require_positive(
        batch_rows=options.batch_rows,
        batch_threads=options.batch_threads,
        max_body=options.max_body,
        max_rows=options.max_rows,
        max_text=options.max_text,
        max_queue=options.max_queue,
    )
    require(
        options.batch_threads <= _MOST_THREADS,
        f"--batch-threads must be at most {_MOST_THREADS}.",
        batch_threads=options.batch_threads,
    )
    require(bool(options.host), "--host must name an address of this machine.", host=options.host)
    for name in ("rest_port", "grpc_port"):
        port = getattr(options, name)
        option = f"--{name.replace('_', '-')}"
        require(0 <= port < 2**16, f"{option} must be a port, 0 to 65535.", **{name: port})
    for name in ("poll", "timeout", "read_timeout"):
        value = getattr(options, name)
        require(value > 0, f"--{name.replace('_', '-')} must be above 0 seconds.", value=value)
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"Serving needs {missing[0]}: pip install 'keras_attn[serve]'.")
    _share_cores(options.batch_threads)
    with quiet_start():
        import asyncio

        from keras_attn import serving

    settings = serving.ModelSettings(
        serving.BatchSettings(
            options.batch_rows, max(options.batch_delay, 0) / 1000, options.batch_threads
        ),
        serving.Limits(
            body_bytes=options.max_body,
            rows=options.max_rows,
            text_bytes=options.max_text,
            queue=options.max_queue,
            timeout=options.timeout,
            read_timeout=options.read_timeout,
        ),
        options.xla,
        options.poll,
    )
    hosts = tuple(options.allowed_hosts)
    for name in hosts:
        require(
            serving.is_host(name), "A host must be a name or an address without a port.", host=name
        )
    ports = serving.Ports(options.host, options.rest_port, options.grpc_port, hosts)
    if not serving.is_loopback(options.host):
        _log(f"warning: {options.host} can be reached from other machines without authentication")
    server = serving.Server(folders, ports, settings, _log)
    asyncio.run(serving.serve_until_told(server, _started))
    _log("ended")


def _share_cores(batches: int) -> None:
    """Divides the cores among the batches that run at the same time."""
    cores = max(1, (os.cpu_count() or 1) // batches)
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
        os.environ.setdefault(name, str(cores))


def _started(server) -> None:
    ports = server.ports
    host = f"[{ports.host}]" if ":" in ports.host else ports.host
    print("This is a development server. Use TensorFlow Serving in production.")
    print(f"REST and page  http://{host}:{ports.rest}/")
    print(f"gRPC           {host}:{ports.grpc}", flush=True)


def _log(line: str) -> None:
    print(f"keras-attn: {line}", file=sys.stderr, flush=True)


def _folders(models: list[str]) -> dict[str, Path]:
    folders = {}
    for model in models:
        name, equals, folder = model.partition("=")
        require(
            bool(equals and folder and _NAME.fullmatch(name)),
            "A model must be NAME=DIR, with a name of letters, digits, '_', '-' and '.'.",
            model=model,
        )
        require(name not in folders, "Every model needs a different name.", name=name)
        folders[name] = Path(folder)
        require(
            folders[name].is_dir(),
            "The folder of a model's versions does not exist.",
            folder=folder,
        )
    return folders
