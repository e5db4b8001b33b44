"""Models by name, their versions, and predictions, for both the REST API and gRPC."""

import asyncio
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataResponse, SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusResponse

from keras_attn.export.runtime import Signature
from keras_attn.serving.batching import Arrays, BatchSettings
from keras_attn.serving.errors import Code, RequestError
from keras_attn.serving.limits import Limits
from keras_attn.serving.loaded_version import LoadedVersion, fitting_inputs, load_session
from keras_attn.serving.metrics import Metrics
from keras_attn.serving.served_model import ServedModel


@dataclasses.dataclass(frozen=True)
class ModelSettings:
    """Settings of running models.

    Attributes:
        batching: Settings of batching.
        limits: Limits of requests.
        xla: Whether functions may use XLA, for exports with `jit`.
        poll_seconds: Seconds between two checks for new versions.

    Examples:
        >>> settings = ModelSettings(limits=Limits(rows=64), poll_seconds=10.0)
        >>> server = Server({"reviews": "exported/reviews"}, settings=settings)
    """

    batching: BatchSettings = dataclasses.field(default_factory=BatchSettings)
    limits: Limits = dataclasses.field(default_factory=Limits)
    xla: bool = False
    poll_seconds: float = 2.0


class ModelServer:
    """Models by name.

    Args:
        folders: The models' folders by name.
        settings: Settings of running models.
        log: Called with each line of the server's log.

    Attributes:
        models: The models by name.
        limits: Limits of requests.
        metrics: Metrics of the server.
        log: Called with each line of the server's log.
    """

    def __init__(
        self,
        folders: Mapping[str, str | Path],
        settings: ModelSettings,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.limits = settings.limits
        self.metrics = Metrics()
        self.log = log
        self._settings = settings
        self._watches: list[asyncio.Task] = []
        batching = dataclasses.replace(settings.batching, queue=settings.limits.queue)
        load = functools.partial(load_session, xla=settings.xla)
        self.models = {
            name: ServedModel(
                name,
                folder,
                load,
                functools.partial(
                    LoadedVersion, settings=batching, observe=self.metrics.batch_observer(name)
                ),
                log,
            )
            for name, folder in folders.items()
        }
        for name, model in self.models.items():
            self.metrics.watch_queue(name, lambda model=model: model.waiting)

    async def open(self) -> None:
        """Loads all models, and starts to look for new versions.

        Raises:
            UserError: One of them cannot be loaded.
        """
        for model in self.models.values():
            await model.open()
        seconds = self._settings.poll_seconds
        self._watches = [
            asyncio.create_task(model.watch(seconds)) for model in self.models.values()
        ]

    async def close(self) -> None:
        """Answers waiting requests, and frees all models."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await asyncio.gather(*(model.close() for model in self.models.values()))

    def version(self, name: str, number: int | None = None, label: str = "") -> LoadedVersion:
        """Returns the version that answers requests to a model.

        Args:
            name: The model's name.
            number: The requested version; the served one by default.
            label: The requested label.

        Raises:
            RequestError: The version is not served.
        """
        if name not in self.models:
            raise RequestError(
                Code.NOT_FOUND, f"Servable not found for request: Latest({name:.100})"
            )
        return self.models[name].version(number, label)

    async def predict(
        self, version: LoadedVersion, signature: str, inputs: Arrays, timeout: float | None = None
    ) -> Arrays:
        """Runs a signature of a version.

        Args:
            version: The result of `version`; nothing may be awaited in between.
            signature: One of its signatures.
            inputs: Arrays by name.
            timeout: Seconds that the client waits, if it has a limit.

        Returns:
            The outputs by name.

        Raises:
            RequestError: The inputs are invalid or too large, or the request timed out.
        """
        inputs = fitting_inputs(signature, version.signatures[signature], inputs)
        self.limits.check(inputs)
        seconds = self.limits.timeout if timeout is None else min(timeout, self.limits.timeout)
        return await version.batcher.predict(signature, inputs, seconds)

    def count(self, name: str, api: str, code: str, start: float) -> None:
        """Counts a prediction request that began at a time of `time.perf_counter`."""
        model = name if name in self.models else ""
        self.metrics.count(model, api, code, time.perf_counter() - start)

    def status(
        self, name: str, number: int | None = None, label: str = ""
    ) -> GetModelStatusResponse:
        """Returns the states of a model's versions, or of one of them.

        Raises:
            RequestError: There is no such model or version.
        """
        if label:
            self.version(name, number, label)
        if name not in self.models:
            raise RequestError(Code.NOT_FOUND, f"Could not find any versions of model {name:.100}")
        statuses = self.models[name].statuses
        if number is not None and number not in statuses:
            raise RequestError(Code.NOT_FOUND, f"Could not find version {number} of model {name}")
        response = GetModelStatusResponse()
        for version in sorted(statuses, reverse=True) if number is None else [number]:
            entry = response.model_version_status.add(
                version=version, state=int(statuses[version].state)
            )
            entry.status.error_message = statuses[version].error
            entry.status.error_code = Code.UNKNOWN.number if statuses[version].error else 0
        return response

    def metadata(
        self, name: str, number: int | None = None, label: str = ""
    ) -> GetModelMetadataResponse:
        """Returns the signatures of the version that is served.

        Raises:
            RequestError: There is no such model or version.
        """
        version = self.version(name, number, label)
        signatures = SignatureDefMap()
        for key, definition in version.signature_definitions().items():
            signatures.signature_def[key].CopyFrom(definition)
        response = GetModelMetadataResponse()
        response.model_spec.name = name
        response.model_spec.version.value = version.number
        response.metadata["signature_def"].Pack(signatures)
        return response


def signature_of(version: LoadedVersion, name: str, unknown: RequestError) -> Signature:
    """Returns a signature of a version, or raises `unknown`."""
    if name not in version.signatures:
        raise unknown
    return version.signatures[name]
