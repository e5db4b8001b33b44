"""Configuration files of TensorFlow Serving for an exported model.

Reference: tensorflow_serving/config/{model_server_config,monitoring_config}.proto and
tensorflow_serving/servables/tensorflow/session_bundle_config.proto (`BatchingParameters`).
"""

import os
import re
import textwrap
from pathlib import Path

from keras_attn.export.layout import template
from keras_attn.export.manifests import Served, docker_compose, kubernetes
from keras_attn.export.runtime import read_meta_graph, read_signatures
from keras_attn.export.warmup import MAX_ROWS
from keras_attn.export_manifest import read_manifest
from keras_attn.files import write_text
from keras_attn.model_versions import latest_version
from keras_attn.validation import UserError, require

MODELS, BATCHING, MONITORING = "models.config", "batching.config", "monitoring.config"
COMPOSE, KUBERNETES = "docker-compose.yaml", "kubernetes.yaml"

_MAX_BATCH = 2 * MAX_ROWS

_SIZES = """\
# XLA compiles each size once.
{sizes}
"""

_PADDING = """\
Inputs of several lengths ({inputs}): the server would pad them with their first element, which \
changes the answer, where 0 is meant. So requests for {signatures} that arrive together must be of \
one length, padded by the client; those of other signatures may be of any."""


def write_serving_config(model_folder: str | Path, folder: str | Path) -> list[Path]:
    """Writes the configuration files of TensorFlow Serving for one model.

    Each file is written under a temporary name and renamed; other files in the folder stay.

    Args:
        model_folder: The exported model, the folder that holds its versions.
        folder: Output folder; created if missing, may contain an older configuration of the model.

    Returns:
        The files: models, batching and monitoring for the server, a file for docker compose, and
        manifests for Kubernetes.

    Raises:
        UserError: The model's name is not allowed in an address, the folder contains the
            configuration of another model, or it cannot be written.
    """
    model_folder, folder = Path(model_folder).resolve(), Path(folder).resolve()
    name = model_folder.name
    require(
        re.fullmatch(r"[A-Za-z0-9_.-]+", name) is not None,
        "The name of a model's folder may contain letters, digits, '_', '-' and '.'.",
        folder=str(model_folder),
    )
    version = latest_version(model_folder)
    models = template(MODELS).format(name=name)
    existing = folder / MODELS
    if existing.is_file() and f'name: "{name}"' not in existing.read_text("utf-8"):
        raise UserError(f"{existing} belongs to another model; choose another folder for {name}.")
    jit = bool(read_manifest(version)["jit"])
    server_files = {
        MODELS: models,
        BATCHING: _batching(version, jit),
        MONITORING: template(MONITORING),
    }
    served = Served(name, f"./{os.path.relpath(model_folder, folder)}", jit)
    files = server_files | {
        COMPOSE: docker_compose(served),
        KUBERNETES: kubernetes(served, server_files),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            write_text(folder / file, content)
    except OSError as error:
        raise UserError(f"The configuration cannot be written to {folder}: {error}.") from error
    return [folder / file for file in files]


def _batching(version: Path, jit: bool) -> str:
    signatures = read_signatures(read_meta_graph(version))
    ragged = {
        name: [key for key, it in signature.inputs.items() if None in (it.shape or ())[1:]]
        for name, signature in signatures.items()
    }
    names = [name for name, inputs in ragged.items() if inputs]
    inputs = sorted({key for keys in ragged.values() for key in keys})
    padding = _PADDING.format(inputs=", ".join(inputs), signatures=", ".join(names))
    powers = [2**power for power in range(_MAX_BATCH.bit_length())]
    sizes = "\n".join(f"allowed_batch_sizes: {size}" for size in powers)
    return template(BATCHING).format(
        size=_MAX_BATCH,
        sizes=_SIZES.format(sizes=sizes) if jit else "",
        padding=_comment(padding) if names else "",
    )


def _comment(text: str) -> str:
    return textwrap.fill(text, 98, initial_indent="# ", subsequent_indent="# ") + "\n"
