"""Metrics in the text format of Prometheus.

Labels are names of served models, never data from clients.
"""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._metric(
            Counter, "requests", "Prediction requests, by outcome.", "model", "api", "code"
        )
        seconds = "Seconds from the complete request to its answer."
        self._seconds = self._metric(
            Histogram, "request_seconds", seconds, "model", "api", buckets=_SECONDS
        )
        rows = "Rows of the batches that ran."
        self._rows = self._metric(Histogram, "batch_rows", rows, "model", buckets=_ROWS)
        self._waiting = self._metric(Gauge, "waiting", "Requests in the queue.", "model")

    def _metric(self, kind: type, name: str, text: str, *labels: str, **options: Any) -> Any:
        name = f"keras_attn_serving_{name}"
        return kind(name, text, labels, registry=self._registry, **options)

    def count(self, model: str, api: str, code: str, seconds: float) -> None:
        """Counts a request to a served model ("" for an unknown one), and its time."""
        self._requests.labels(model, api, code).inc()
        self._seconds.labels(model, api).observe(seconds)

    def batch_observer(self, model: str) -> Callable[[int], None]:
        """Returns a function that counts the rows of a batch."""
        return self._rows.labels(model).observe

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Registers a function that returns the length of a model's queue."""
        self._waiting.labels(model).set_function(waiting)

    def text(self) -> bytes:
        """Returns all metrics, as `CONTENT_TYPE`."""
        return generate_latest(self._registry)
