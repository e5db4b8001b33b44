"""Containers that run TensorFlow Serving: files for docker compose and Kubernetes."""

import dataclasses
import re
from collections.abc import Mapping

import yaml

IMAGE = "tensorflow/serving:2.21.0"
"""Its TensorFlow must not be older than that of the export."""

_CONFIG = "/config"
_GRPC, _REST = 8500, 8501


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

    @property
    def status(self) -> str:
        """Path of the model's status in the REST API."""
        return f"/v1/models/{self.name}"


def docker_compose(served: Served) -> str:
    """Describes a server on this machine that other machines cannot reach.

    Args:
        served: The model.

    Returns:
        YAML for `docker compose up`.
    """
    service = {
        "image": IMAGE,
        "command": served.arguments,
        "ports": [f"127.0.0.1:{port}:{port}" for port in (_GRPC, _REST)],
        "volumes": [
            _mount(served.path, f"/models/{served.name}"),
            _mount(".", _CONFIG),
        ],
        "restart": "unless-stopped",
    }
    return _yaml({"services": {"serving": service}})


def kubernetes(served: Served, files: Mapping[str, str]) -> str:
    """Describes servers in a cluster with a common address.

    Args:
        served: The model.
        files: What the server reads when it starts, by name.

    Returns:
        YAML of a ConfigMap, a Deployment and a Service.
    """
    name = re.sub("[^a-z0-9]+", "-", served.name.lower()).strip("-") or "model"
    labels = {"app": name}
    status = {"path": served.status, "port": "rest"}
    container = {
        "name": "serving",
        "image": IMAGE,
        "args": served.arguments,
        "ports": [
            {"name": "grpc", "containerPort": _GRPC},
            {"name": "rest", "containerPort": _REST},
        ],
        # The ports are open once the model is loaded and warm: ten minutes are given for that.
        "startupProbe": {"httpGet": status, "periodSeconds": 5, "failureThreshold": 120},
        "readinessProbe": {"httpGet": status, "periodSeconds": 5, "timeoutSeconds": 2},
        "livenessProbe": {"tcpSocket": {"port": "grpc"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "model", "mountPath": f"/models/{served.name}", "readOnly": True},
        ],
    }
    volumes = [
        {"name": "config", "configMap": {"name": f"{name}-config"}},
        {
            "name": "model",
            "persistentVolumeClaim": {"claimName": f"{name}-model", "readOnly": True},
        },
    ]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}
    return _yaml(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-config"},
            "data": dict(files),
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                # A new server is ready before an old one goes.
                "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                "template": pods,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {
                "selector": labels,
                "ports": [
                    {"name": "grpc", "port": _GRPC, "targetPort": "grpc"},
                    {"name": "rest", "port": _REST, "targetPort": "rest"},
                ],
            },
        },
    )


def _mount(source: str, target: str) -> dict:
    return {"type": "bind", "source": source, "target": target, "read_only": True}


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
