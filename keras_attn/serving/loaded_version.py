"""One version of a model, loaded into TensorFlow's C++ runtime and warmed up, with its queue."""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from keras_attn.export import CppSavedModel, SavedModelError
from keras_attn.export.c_api import dtype_name
from keras_attn.export.runtime import Signature, read_meta_graph
from keras_attn.export.warmup import read_warmup
from keras_attn.serving.batching import Arrays, Batcher, BatchSettings
from keras_attn.serving.errors import from_model, invalid
from keras_attn.serving.page_models import model_facts


class LoadedVersion:
    """A version that answers requests.

    It is created in an event loop, after `load_session` has run in a thread.

    Args:
        number: The version.
        session: The loaded model.
        settings: Settings of batching.
        observe: Called with the number of rows of each batch.

    Attributes:
        number: The version.
        batcher: Its queue.
    """

    def __init__(
        self,
        number: int,
        session: CppSavedModel,
        settings: BatchSettings,
        observe: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self.number = number
        self.batcher = Batcher(session.signatures, self._run, settings, observe)
        self._session = session

    @property
    def signatures(self) -> dict[str, Signature]:
        """Inputs and outputs of each signature, by name."""
        return self._session.signatures

    def signature_definitions(self) -> dict[str, SignatureDef]:
        """Returns the definitions in the SavedModel, TensorFlow's own among them."""
        definitions = read_meta_graph(self._session.folder).signature_def
        return {
            name: SignatureDef.FromString(definition.SerializeToString())
            for name, definition in definitions.items()
        }

    @functools.cached_property
    def page_facts(self) -> dict[str, Any]:
        """What the demo page shows of it (see `model_facts`)."""
        return model_facts(self._session.folder)

    async def close(self) -> None:
        """Answers waiting requests, and frees the model."""
        await self.batcher.close()
        await asyncio.to_thread(self._session.close)

    def _run(self, signature: str, inputs: Arrays) -> Arrays:
        try:
            return self._session.run(signature, inputs)
        except SavedModelError as error:
            raise from_model(error) from error


def load_session(folder: Path, xla: bool) -> CppSavedModel:
    """Loads a version folder and replays its warm-up records; none may fail.

    Args:
        folder: The version folder.
        xla: Whether functions may use XLA. Otherwise XLA is disabled for the whole process.

    Raises:
        UserError: It cannot be loaded.
    """
    session = CppSavedModel(folder, disable_xla=not xla)
    try:
        for signature, inputs in read_warmup(session.folder):
            session.run(signature, inputs)
    except BaseException:
        session.close()
        raise
    return session


def fitting_inputs(
    name: str, signature: Signature, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Checks that the inputs of a request fit a signature, and returns them.

    Args:
        name: The signature's name, for errors.
        signature: The signature.
        inputs: Arrays by name.

    Raises:
        RequestError: Names, types or shapes are different.
    """
    check_names(name, signature, inputs)
    for key, info in signature.inputs.items():
        array = inputs[key]
        if array.dtype != info.dtype:
            expected, received = dtype_name(info.dtype), dtype_name(array.dtype)
            raise invalid(f"Input {key!r} must be of type {expected}. Received: {received}.")
        if not info.accepts(array.shape):
            raise invalid(
                f"Input {key!r} must have the shape {_shown(info.shape)}. "
                f"Received: {_shown(array.shape)}."
            )
    return dict(inputs)


def check_names(name: str, signature: Signature, names: Iterable[str]) -> None:
    """Checks the names of inputs, before their values are read.

    Args:
        name: The signature's name, for errors.
        signature: The signature.
        names: The names of the inputs, each once.

    Raises:
        RequestError: They are not the inputs of the signature.
    """
    expected, received = sorted(signature.inputs), sorted(names)
    if received != expected:
        raise invalid(
            f"The inputs of signature {name!r} are {', '.join(expected)}. "
            f"Received: {', '.join(received) or 'none'}."
        )


def _shown(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
