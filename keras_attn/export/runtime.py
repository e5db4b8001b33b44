"""Runs SavedModels in TensorFlow's C++ runtime, as TensorFlow Serving does.

Loading takes a fraction of a second, since TensorFlow's Python is never imported.
"""

import ctypes
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.export import c_api
from keras_attn.export.c_api import SavedModelError, Status
from keras_attn.export.messages import MetaGraphDef, OpList, SavedModel, TensorInfo
from keras_attn.model_versions import SAVED_MODEL, latest_version
from keras_attn.validation import UserError, require, require_one_of


@dataclasses.dataclass(frozen=True)
class SignatureTensor:
    """One input or output of a signature.

    Attributes:
        tensor: Name of the tensor in the graph, such as "serving_default_text:0".
        dtype: NumPy's data type (object for strings), None where NumPy has none.
        shape: Sizes, None for an unknown one; None altogether where the rank is unknown.
    """

    tensor: str
    dtype: np.dtype | None
    shape: tuple[int | None, ...] | None

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether an array may have a shape."""
        return self.shape is None or (
            len(self.shape) == len(shape)
            and all(size in (None, found) for size, found in zip(self.shape, shape, strict=True))
        )


@dataclasses.dataclass(frozen=True)
class Signature:
    """Inputs and outputs of a signature, by name."""

    inputs: dict[str, SignatureTensor]
    outputs: dict[str, SignatureTensor]


def read_meta_graph(version_folder: Path) -> MetaGraphDef:
    """Returns the graph that is tagged "serve".

    Raises:
        SavedModelError: The file is damaged, or has no such graph.
    """
    path = version_folder / SAVED_MODEL
    try:
        saved_model = SavedModel.FromString(path.read_bytes())
    except Exception as error:  # protobuf's DecodeError has no public base but Exception
        raise SavedModelError(f"{path} is damaged: {c_api.one_line(error)}.") from error
    for meta_graph in saved_model.meta_graphs:
        if list(meta_graph.meta_info_def.tags) == ["serve"]:
            return meta_graph
    raise SavedModelError(f"{path} has no graph tagged 'serve'.")


def read_signatures(meta_graph: MetaGraphDef) -> dict[str, Signature]:
    """Returns the signatures of a graph, without TensorFlow's own (`__saved_model_init_op`)."""
    return {
        name: Signature(
            {key: _signature_tensor(info) for key, info in sorted(definition.inputs.items())},
            {key: _signature_tensor(info) for key, info in sorted(definition.outputs.items())},
        )
        for name, definition in sorted(meta_graph.signature_def.items())
        if not name.startswith("__saved_model")
    }


def _signature_tensor(info: TensorInfo) -> SignatureTensor:
    shape = info.tensor_shape
    sizes = tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
    return SignatureTensor(
        info.name, c_api.DTYPES.get(info.dtype), None if shape.unknown_rank else sizes
    )


def _require_variables(version_folder: Path, meta_graph: MetaGraphDef) -> None:
    # TensorFlow loads a model without its weights, and fails when the model runs.
    index = version_folder / "variables" / "variables.index"
    has_variables = any(node.op == "VarHandleOp" for node in meta_graph.graph_def.node)
    if has_variables and not index.is_file():
        raise SavedModelError(f"{version_folder} has no variables: {index} is missing.")


def load_text_libraries(library: ctypes.CDLL) -> list[str]:
    """Loads the op libraries of tensorflow-text that TensorFlow Serving links.

    These are in the folder of its ops; the library of metrics is in another folder.

    Returns:
        The names of the libraries; none where tensorflow-text is not installed.
    """
    folder = c_api.package_folder("tensorflow_text")
    paths = sorted((folder / "python" / "ops").glob("*.so")) if folder else []
    for path in paths:
        with Status(library, f"Loading {path.name}") as status:
            library.TF_LoadLibrary(str(path).encode(), status)
    return [path.stem for path in paths]


def served_ops() -> frozenset[str]:
    """Returns the names of all ops that TensorFlow Serving links.

    They are read from the registry of the C++ runtime, which contains TensorFlow's own ops and
    those of tensorflow-text, and the ops of any other library that the process has loaded.

    Examples:
        >>> ops = served_ops()
        >>> "MatMul" in ops, "WordpieceTokenizeWithOffsets" in ops, "MyCustomOp" in ops
        (True, True, False)
    """
    library = c_api.load_tensorflow()
    load_text_libraries(library)
    buffer = library.TF_GetAllOpList()
    ops = OpList.FromString(buffer.contents.content())
    library.TF_DeleteBuffer(buffer)
    return frozenset(op.name for op in ops.op)


class CppSavedModel:
    """A SavedModel in TensorFlow's C++ runtime; also a context manager that closes it.

    Args:
        folder: A version folder, or the folder above, whose highest version is loaded.
        disable_xla: Whether to disable XLA as TensorFlow Serving does by default, so that a
            function that needs it fails. This is permanent for the whole process.

    Attributes:
        folder: The version folder.
        signatures: A `Signature` by name.

    Raises:
        UserError: There is no SavedModel.
        SavedModelError: The SavedModel is damaged, or needs ops that TensorFlow Serving lacks.

    Examples:
        >>> with CppSavedModel("exported/reviews") as model:
        ...     outputs = model.run("serving_default", {"text": ["good film", "bad film"]})
        >>> outputs["label"]
        array([b'good', b'bad'], dtype=object)
    """

    def __init__(self, folder: str | Path, disable_xla: bool = False) -> None:
        self.folder = latest_version(folder)
        meta_graph = read_meta_graph(self.folder)
        _require_variables(self.folder, meta_graph)
        self.signatures = read_signatures(meta_graph)
        self._library = c_api.load_tensorflow()
        load_text_libraries(self._library)
        if disable_xla:
            self._library._ZN10tensorflow21DisableXlaCompilationEv()
        self._graph = self._library.TF_NewGraph()
        self._session = None
        options = self._library.TF_NewSessionOptions()
        tags = (ctypes.c_char_p * 1)(b"serve")
        try:
            with Status(self._library, f"Loading {self.folder}") as status:
                self._session = self._library.TF_LoadSessionFromSavedModel(
                    options, None, str(self.folder).encode(), tags, 1, self._graph, None, status
                )
        except SavedModelError:
            self.close()
            raise
        finally:
            self._library.TF_DeleteSessionOptions(options)

    def run(
        self, signature: str, inputs: Mapping[str, np.ndarray | list[Any]]
    ) -> dict[str, np.ndarray]:
        """Runs one signature.

        Args:
            signature: Its name, such as "serving_default".
            inputs: One array for each input; strings as an object array (or list) of bytes or str.

        Returns:
            One array for each output, strings as an object array of bytes.

        Raises:
            UserError: The signature does not exist, or an input has the wrong name, data type or
                rank.
            SavedModelError: The runtime reported an error.
        """
        require_one_of("signature", signature, self.signatures)
        definition = self.signatures[signature]
        expected = sorted(definition.inputs)
        require(
            sorted(inputs) == expected,
            f"The inputs of {signature!r} are {', '.join(map(repr, expected))}.",
            inputs=sorted(inputs),
        )
        arrays = [_as_array(name, inputs[name], spec) for name, spec in definition.inputs.items()]
        feeds = [self._output(spec.tensor) for spec in definition.inputs.values()]
        fetches = [self._output(spec.tensor) for spec in definition.outputs.values()]
        library, results = self._library, (ctypes.c_void_p * len(fetches))()
        tensors: list[int] = []
        try:
            tensors.extend(c_api.to_tensor(library, array) for array in arrays)
            with Status(library, f"Running {signature!r}") as status:
                library.TF_SessionRun(
                    self._session,
                    None,
                    (c_api.Output * len(feeds))(*feeds),
                    (ctypes.c_void_p * len(tensors))(*tensors),
                    len(feeds),
                    (c_api.Output * len(fetches))(*fetches),
                    results,
                    len(fetches),
                    None,
                    0,
                    None,
                    status,
                )
            found = [c_api.to_array(library, tensor) for tensor in results if tensor is not None]
            return dict(zip(definition.outputs, found, strict=True))
        finally:
            for tensor in filter(None, results):
                library.TF_DeleteTensor(tensor)
            # After the outputs, which may share a buffer with an input.
            for tensor in tensors:
                c_api.delete_input(library, tensor)

    def _output(self, tensor: str) -> c_api.Output:
        name, _, index = tensor.rpartition(":")
        if self._session is None:
            raise SavedModelError(f"{self.folder} is closed.")
        operation = self._library.TF_GraphOperationByName(self._graph, name.encode())
        outputs = self._library.TF_OperationNumOutputs(operation) if operation else 0
        if not index.isdecimal() or len(index) > 9 or int(index) >= outputs:
            raise SavedModelError(f"{self.folder} has no dense tensor named {tensor!r}.")
        return c_api.Output(operation, int(index))

    def close(self) -> None:
        """Frees the session and its memory; can be called twice."""
        if self._session:
            with Status(self._library, "Closing") as status:
                self._library.TF_CloseSession(self._session, status)
            with Status(self._library, "Closing") as status:
                self._library.TF_DeleteSession(self._session, status)
        if self._graph:
            self._library.TF_DeleteGraph(self._graph)
        self._session = self._graph = None

    def __enter__(self) -> "CppSavedModel":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _as_array(name: str, value: Any, spec: SignatureTensor) -> np.ndarray:
    dtype = spec.dtype
    if dtype is None:
        raise UserError(f"NumPy does not support the data type of input {name!r}.")
    is_text = spec.dtype == object
    array = np.asarray(value, dtype=object if is_text else None)
    if is_text:
        strings = all(isinstance(item, str | bytes) for item in array.flat)
        require(strings, f"Input {name!r} must contain strings.", value=value)
    else:
        if array.size == 0 and not isinstance(value, np.ndarray):
            array = array.astype(dtype)
        require(
            np.can_cast(array.dtype, dtype, "same_kind") and array.dtype != object,
            f"Input {name!r} must be of type {dtype}.",
            dtype=str(array.dtype),
        )
        array = array.astype(dtype, copy=False)
    fits = spec.accepts(array.shape)
    require(fits, f"Input {name!r} must have the shape {spec.shape}.", shape=array.shape)
    return array
