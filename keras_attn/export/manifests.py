"""Containers that run TensorFlow Serving: files for docker compose and Kubernetes."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import yaml

from keras_attn.export.layout import template

IMAGE = "tensorflow/serving:2.21.0"
"""Its TensorFlow must not be older than that of the export."""

_CONFIG = "/config"


@dataclasses.dataclass(frozen=True)
class Served:
    """A model to serve.

    Attributes:
        name: Its name.
        path: Its folder, as seen from that of the configuration.
        jit: Whether it was compiled by XLA.
    """

    name: str
    path: str
    jit: bool

    @property
    def arguments(self) -> list[str]:
        """Command-line arguments of the server."""
        return [
            f"--model_config_file={_CONFIG}/models.config",
            f"--monitoring_config_file={_CONFIG}/monitoring.config",
            "--enable_batching=true",
            f"--batching_parameters_file={_CONFIG}/batching.config",
            *(["--xla_cpu_compilation_enabled=true"] if self.jit else []),
        ]


def docker_compose(served: Served) -> str:
    """Describes a server on this machine that other machines cannot reach.

    Args:
        served: The model.

    Returns:
        YAML for `docker compose up`.
    """
    return _document("docker-compose.yaml", served, path=served.path)


def kubernetes(served: Served, files: Mapping[str, str]) -> str:
    """Describes servers in a cluster with a common address.

    Args:
        served: The model.
        files: What the server reads when it starts, by name.

    Returns:
        YAML of a ConfigMap, a Deployment and a Service.
    """
    name = re.sub("[^a-z0-9]+", "-", served.name.lower()).strip("-") or "model"
    return _document(
        "kubernetes.yaml",
        served,
        name=name,
        config=f"{name}-config",
        claim=f"{name}-model",
        labels={"app": name},
        status={"path": f"/v1/models/{served.name}", "port": "rest"},
        files=dict(files),
    )


def _document(file: str, served: Served, **values: Any) -> str:
    """YAML of a template, with values in place of `$name`."""
    values |= {"image": IMAGE, "arguments": served.arguments, "folder": f"/models/{served.name}"}
    return _yaml(*(_filled(document, values) for document in yaml.safe_load_all(template(file))))


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, values) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(item, values) for item in part]
    is_place = isinstance(part, str) and part.startswith("$")
    return values[part.removeprefix("$")] if is_place else part


def _yaml(*documents: dict) -> str:
    # Texts of several lines as they are read, not as one quoted line.
    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.ignore_aliases = lambda *_: True
    return yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=100)
