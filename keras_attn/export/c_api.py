"""TensorFlow's C API through ctypes, with conversion of tensors to and from NumPy.

The wheel's `libtensorflow_cc` is found without importing TensorFlow; no compiler is needed.

Reference: tensorflow/c/{c_api,tf_tensor,tf_tstring}.h.
"""

import ctypes
import importlib.util
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

from keras_attn.validation import UserError

STRING = 7
DTYPES: dict[int, np.dtype] = {
    1: np.dtype("float32"),
    2: np.dtype("float64"),
    3: np.dtype("int32"),
    4: np.dtype("uint8"),
    5: np.dtype("int16"),
    6: np.dtype("int8"),
    STRING: np.dtype("object"),
    9: np.dtype("int64"),
    10: np.dtype("bool"),
    17: np.dtype("uint16"),
    19: np.dtype("float16"),
    22: np.dtype("uint32"),
    23: np.dtype("uint64"),
}
DTYPE_CODES = {dtype: code for code, dtype in DTYPES.items()}

_STRING_BYTES = 24  # sizeof(TF_TString)


def dtype_name(dtype: np.dtype | None) -> str:
    """Returns the name of a tensor's data type; objects are strings."""
    return "string" if dtype is not None and dtype.kind == "O" else str(dtype)


class SavedModelError(UserError):
    """A SavedModel cannot be loaded or run.

    Args:
        message: A message of one line.
        code: TensorFlow's error code, such as 3 for an invalid argument; 13, an internal
            error, where TensorFlow reported none.

    Examples:
        >>> with CppSavedModel("exported/reviews") as model:
        ...     try:
        ...         model.run("token_ids", {"token_ids": np.array([[999]], "int32")})
        ...     except SavedModelError as error:
        ...         print(error)
        Running 'token_ids' failed: ...
    """

    def __init__(self, message: str, code: int = 13) -> None:
        super().__init__(message)
        self.code = code


class Buffer(ctypes.Structure):
    """`TF_Buffer`: serialized protobuf that TensorFlow returns."""

    _fields_ = (("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p))

    def content(self) -> bytes:
        """Returns a copy of the bytes."""
        return ctypes.string_at(self.data, self.length)


class Output(ctypes.Structure):
    """`TF_Output`: one output of one operation of a graph."""

    _fields_ = (("operation", c_void_p), ("index", c_int))


# name -> (type of the result, types of the arguments)
_PROTOTYPES = {
    "TF_Version": (c_char_p, []),
    "TF_NewStatus": (c_void_p, []),
    "TF_DeleteStatus": (None, [c_void_p]),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_GetAllOpList": (POINTER(Buffer), []),
    "TF_DeleteBuffer": (None, [POINTER(Buffer)]),
    "TF_NewGraph": (c_void_p, []),
    "TF_DeleteGraph": (None, [c_void_p]),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_OperationNumOutputs": (c_int, [c_void_p]),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_DeleteSessionOptions": (None, [c_void_p]),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p],
    ),
    "TF_CloseSession": (None, [c_void_p, c_void_p]),
    "TF_DeleteSession": (None, [c_void_p, c_void_p]),
    "TF_SessionRun": (
        None,
        [c_void_p, c_void_p]
        + 2 * [POINTER(Output), POINTER(c_void_p), c_int]
        + [c_void_p, c_int, c_void_p, c_void_p],
    ),
    "TF_AllocateTensor": (c_void_p, [c_int, POINTER(c_int64), c_int, c_size_t]),
    "TF_DeleteTensor": (None, [c_void_p]),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_TensorByteSize": (c_size_t, [c_void_p]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_StringInit": (None, [c_void_p]),
    "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
    "TF_StringDealloc": (None, [c_void_p]),
    "TF_StringGetSize": (c_size_t, [c_void_p]),
    "TF_StringGetDataPointer": (c_void_p, [c_void_p]),
    # tensorflow::DisableXlaCompilation(), what TensorFlow Serving calls when it starts.
    "_ZN10tensorflow21DisableXlaCompilationEv": (None, []),
}


def package_folder(package: str) -> Path | None:
    """Returns the folder of an installed package without importing it, or None."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def load_tensorflow() -> ctypes.CDLL:
    """Returns the C API of the installed TensorFlow, its functions' types declared.

    Raises:
        SavedModelError: TensorFlow is not installed, or its wheel has no such library.
    """
    folder = package_folder("tensorflow")
    libraries = sorted(folder.glob("libtensorflow_cc*")) if folder else []
    if not libraries:
        raise SavedModelError(
            f"TensorFlow's wheel must be installed with its libtensorflow_cc. Received: {folder}."
        )
    try:
        library = ctypes.CDLL(str(libraries[0]))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise SavedModelError(f"{libraries[0]} cannot be used: {one_line(error)}.") from error
    return library


class Status:
    """`TF_Status` as a context manager that raises the error that TensorFlow reported."""

    def __init__(self, library: ctypes.CDLL, action: str) -> None:
        self._library = library
        self._action = action
        self.pointer = library.TF_NewStatus()

    def __enter__(self) -> int:
        return self.pointer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        code = self._library.TF_GetCode(self.pointer)
        message = self._library.TF_Message(self.pointer).decode("utf-8", "replace")
        self._library.TF_DeleteStatus(self.pointer)
        if code and error is None:
            raise SavedModelError(f"{self._action} failed: {one_line(message)}", code)


def one_line(message: object, limit: int = 400) -> str:
    """Returns a message without line breaks and no longer than `limit` characters."""
    text = " ".join(str(message).split()).rstrip(".")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def to_tensor(library: ctypes.CDLL, array: np.ndarray) -> int:
    """Returns a new `TF_Tensor` with a copy of an array; an object array holds bytes or str."""
    code = DTYPE_CODES[array.dtype]
    dims = (c_int64 * array.ndim)(*array.shape)
    size = array.size * (_STRING_BYTES if code == STRING else array.itemsize)
    tensor = library.TF_AllocateTensor(code, dims, array.ndim, size)
    data = library.TF_TensorData(tensor)
    if code != STRING:
        source = np.ascontiguousarray(array)  # a copy of a slice must live until it is read
        ctypes.memmove(data, source.ctypes.data, size)
        return tensor
    for offset, value in enumerate(array.flat):
        text = value.encode("utf-8") if isinstance(value, str) else bytes(value)
        library.TF_StringInit(data + _STRING_BYTES * offset)
        library.TF_StringCopy(data + _STRING_BYTES * offset, text, len(text))
    return tensor


def delete_input(library: ctypes.CDLL, tensor: int) -> None:
    """Frees a tensor made by `to_tensor`; TensorFlow itself does not free such strings."""
    if library.TF_TensorType(tensor) == STRING:
        data = library.TF_TensorData(tensor)
        for offset in range(0, library.TF_TensorByteSize(tensor), _STRING_BYTES):
            library.TF_StringDealloc(data + offset)
    library.TF_DeleteTensor(tensor)


def to_array(library: ctypes.CDLL, tensor: int) -> np.ndarray:
    """Returns a copy of a `TF_Tensor`; strings become an object array of bytes."""
    code = library.TF_TensorType(tensor)
    if code not in DTYPES:
        raise SavedModelError(f"A tensor of TensorFlow's data type number {code} has no array.")
    shape = tuple(library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor)))
    data, size = library.TF_TensorData(tensor), library.TF_TensorByteSize(tensor)
    if code != STRING:
        content = ctypes.string_at(data, size) if size else b""
        return np.frombuffer(content, DTYPES[code]).reshape(shape).copy()
    array = np.empty(size // _STRING_BYTES, object)
    for row in range(array.size):
        string = data + _STRING_BYTES * row
        pointer = library.TF_StringGetDataPointer(string)
        array[row] = ctypes.string_at(pointer, library.TF_StringGetSize(string))
    return array.reshape(shape)
