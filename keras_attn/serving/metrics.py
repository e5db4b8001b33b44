"""Metrics in the text format of Prometheus.

Labels are names of served models, never data from clients.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        prefix = "keras_attn_serving"
        self._requests = Counter(
            f"{prefix}_requests",
            "Prediction requests, by outcome.",
            ("model", "api", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            f"{prefix}_request_seconds",
            "Seconds from the complete request to its answer.",
            ("model", "api"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._rows = Histogram(
            f"{prefix}_batch_rows",
            "Rows of the batches that ran.",
            ("model",),
            buckets=_ROWS,
            registry=registry,
        )
        self._waiting = Gauge(
            f"{prefix}_waiting", "Requests in the queue.", ("model",), registry=registry
        )

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
