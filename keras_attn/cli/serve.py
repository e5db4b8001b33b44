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

from keras_attn.cli.options import add_value
from keras_attn.cli.terminal import quiet_start
from keras_attn.validation import UserError, require, require_positive

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MOST_THREADS = 1024  # of this process
_MODULES = ("grpc", "prometheus_client", "starlette", "tensorflow_serving", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `serve`."""
    add = parser.add_argument
    models = "name of a model, and the folder of its versions"
    add("models", nargs="+", metavar="NAME=DIR", help=models)
    add_value(parser, "--rest-port", 8501, "0 for a free port")
    add_value(parser, "--grpc-port", 8500, "0 for a free port")
    address = "address to listen on (default: only this machine)"
    add_value(parser, "--host", "127.0.0.1", address, "ADDRESS")
    add(
        "--allowed-hosts",
        nargs="+",
        default=[],
        metavar="NAME",
        help="additional names allowed in Host and Origin of requests; '*' for all (see "
        "the guide to serving)",
    )
    add_value(parser, "--poll", 2.0, "look for versions every S seconds", "S")
    add("--xla", action="store_true", help="enable XLA, for models exported with --jit")
    group = parser.add_argument_group("batching of simultaneous requests")
    add_value(group, "--batch-rows", 64, "most rows of a batch; 1 for no batching")
    add_value(group, "--batch-delay", 0.0, "wait for more requests", "MS")
    threads = "batches of a model at the same time; they share the cores (default: 2)"
    add_value(group, "--batch-threads", min(2, os.cpu_count() or 1), threads)
    group = parser.add_argument_group("limits")
    add_value(group, "--max-body", 4 << 20, "most bytes of a request (default: 4 MiB)", "BYTES")
    add_value(group, "--max-rows", 256, "most rows of a request, and texts of an input")
    most_text = "most bytes of a text or image (default: 1 MiB)"
    add_value(group, "--max-text", 1 << 20, most_text, "BYTES")
    add_value(group, "--max-queue", 512, "most waiting requests")
    add_value(group, "--timeout", 30.0, "time limit of an answer", "S")
    add_value(group, "--read-timeout", 10.0, "time limit of reading a request", "S")


def run(options: argparse.Namespace) -> None:
    """Serves until a signal stops it."""
    folders = _folders(options.models)
    whole = ("batch_rows", "batch_threads", "max_body", "max_rows", "max_text", "max_queue")
    require_positive(**{name: getattr(options, name) for name in whole})
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
