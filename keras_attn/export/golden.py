"""Golden outputs: the outputs of the Python task for example inputs before its export.

Quantized exports have the outputs of the quantized weights. The export writes them once as JSON;
strings are decoded from UTF-8, with invalid bytes kept by Python's `surrogateescape`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_attn.documents import read_json
from keras_attn.export.c_api import dtype_name
from keras_attn.export.layout import GOLDEN, write_json
from keras_attn.validation import UserError, require

RTOL, ATOL = 1e-4, 1e-5
ROUNDING_RTOL = 0.05  # where a number may be rounded either way, by other kernels or processors

Example = tuple[str, dict[str, np.ndarray], dict[str, np.ndarray]]


class Golden(NamedTuple):
    """Expected outputs of an exported SavedModel.

    Attributes:
        examples: Name of a signature, inputs and outputs of each example.
        rtol: Relative tolerance of floating-point outputs.
    """

    examples: list[Example]
    rtol: float = RTOL


def write_golden(version_folder: Path, golden: Golden) -> None:
    """Writes golden outputs into a version folder."""
    content = [
        {"signature": name, "inputs": _to_json(inputs), "outputs": _to_json(outputs)}
        for name, inputs, outputs in golden.examples
    ]
    write_json(version_folder / GOLDEN, {"rtol": golden.rtol, "atol": ATOL, "examples": content})


def read_golden(version_folder: Path) -> Golden:
    """Returns the golden outputs of an exported SavedModel.

    Raises:
        UserError: The file is missing or damaged, or contains no example.
    """
    path = version_folder / GOLDEN
    require(path.exists(), f"The export is incomplete: {path} is missing.")
    content = read_json(path)
    try:
        examples = [
            (entry["signature"], _from_json(entry["inputs"]), _from_json(entry["outputs"]))
            for entry in content["examples"]
        ]
        rtol = float(content["rtol"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a file of golden outputs: {error!r}.") from error
    if not examples:
        raise UserError(f"{path} contains no example.")
    return Golden(examples, rtol)


def compare(
    expected: Mapping[str, np.ndarray], received: Mapping[str, np.ndarray], rtol: float = RTOL
) -> list[str]:
    """Returns how received outputs differ from the expected ones, one line for each output.

    Floating-point numbers may differ by `rtol` and `ATOL`; all else must be equal.
    """
    if sorted(expected) != sorted(received):
        return [f"outputs {sorted(received)} instead of {sorted(expected)}"]
    differences = (
        _difference(name, expected[name], received[name], rtol) for name in sorted(expected)
    )
    return [difference for difference in differences if difference]


def _difference(name: str, expected: np.ndarray, received: np.ndarray, rtol: float) -> str:
    if expected.shape != received.shape or expected.dtype != received.dtype:
        return (
            f"output {name!r} is {received.dtype} {received.shape} "
            f"instead of {expected.dtype} {expected.shape}"
        )
    if expected.dtype.kind == "f":
        equal = np.isclose(received, expected, rtol=rtol, atol=ATOL, equal_nan=True)
    else:
        equal = np.asarray(received == expected)
    if equal.all():
        return ""
    where = tuple(int(index) for index in np.argwhere(~equal)[0])
    return (
        f"output {name!r} differs in {np.sum(~equal)} of {equal.size} values, first at {where}: "
        f"{received[where]!r} instead of {expected[where]!r}"
    )


def _to_json(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        name: {
            "dtype": dtype_name(array.dtype),
            "shape": list(array.shape),
            "values": [_plain(value) for value in array.ravel().tolist()],
        }
        for name, array in sorted(arrays.items())
    }


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _from_json(content: Mapping[str, Any]) -> dict[str, np.ndarray]:
    arrays = {}
    for name, entry in content.items():
        values, dtype = entry["values"], entry["dtype"]
        if dtype == "string":
            values = [value.encode("utf-8", "surrogateescape") for value in values]
            dtype = object
        arrays[name] = np.array(values, dtype).reshape(entry["shape"])
    return arrays
