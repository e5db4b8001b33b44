"""Conversion of the REST API's JSON to arrays and back.

A request contains its inputs by rows (`instances`) or by columns (`inputs`), and the answer has the
same format.

Reference: TensorFlow Serving's guide to its RESTful API.
"""

import base64
import binascii
import dataclasses
import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_attn.documents import parse_json
from keras_attn.export.runtime import Signature, SignatureTensor
from keras_attn.serving.errors import Code, RequestError, invalid
from keras_attn.validation import UserError

DEFAULT_SIGNATURE = "serving_default"
_MOST_DIMENSIONS = 32
VALUES_AT_ONCE = 10_000
"""Most values that are encoded without a pause."""

_BYTES_SUFFIX = "_bytes"
_NUMBERS = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}


@dataclasses.dataclass(frozen=True)
class JsonRequest:
    """A parsed request.

    Attributes:
        signature: Name of the signature.
        by_rows: Whether `values` are rows, each a value or an object, or columns.
        values: The value of `instances` or `inputs`.
    """

    signature: str
    by_rows: bool
    values: Any

    @property
    def most_rows(self) -> int:
        """The length of the longest of its lists of rows."""
        columns = self.values.values() if isinstance(self.values, dict) else [self.values]
        return max((len(column) for column in columns if isinstance(column, list)), default=0)


def parse_request(body: bytes) -> JsonRequest:
    """Parses the body of a request.

    Raises:
        RequestError: It is not JSON in UTF-8, or has neither format.
    """
    try:
        content = parse_json(body.decode("utf-8"), "JSON Parse error")
    except UnicodeDecodeError as error:
        raise invalid(f"JSON Parse error: {error}.") from None
    except UserError as error:
        raise invalid(str(error)) from None
    if not isinstance(content, dict):
        raise invalid(f"The body must be a JSON object. Received: {_kind(content)}.")
    signature = content.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(signature, str):
        raise invalid(f"'signature_name' must be a string. Received: {_kind(signature)}.")
    forms = [form for form in ("instances", "inputs") if form in content]
    if len(forms) != 1:
        raise invalid("The body must have either the key 'instances' or the key 'inputs'.")
    values = content[forms[0]]
    by_rows = forms == ["instances"]
    if by_rows and not (isinstance(values, list) and values):
        raise invalid("'instances' must be a list with at least one value.")
    return JsonRequest(signature or DEFAULT_SIGNATURE, by_rows, values)


def decode_inputs(request: JsonRequest, signature: Signature) -> dict[str, np.ndarray]:
    """Converts the values of a request to the inputs of a signature.

    Returns:
        One array for each input, strings as an object array of bytes.

    Raises:
        RequestError: Names, nesting or types do not match the signature.
    """
    names = sorted(signature.inputs)
    columns = (_row_columns if request.by_rows else _columns)(request.values, names)
    return {
        name: _decode_tensor(name, columns[name], info) for name, info in signature.inputs.items()
    }


def encode_outputs(outputs: Mapping[str, np.ndarray], by_rows: bool) -> bytes:
    """Returns the body of an answer; a single output has no name.

    Args:
        outputs: Arrays by name, strings as bytes. Those whose name ends in `_bytes` are written in
            base64.
        by_rows: Whether the answer has rows (`predictions`) or columns (`outputs`).

    Raises:
        RequestError: The answer has rows, but the outputs differ in their number of rows.
    """
    columns = {name: _listed(name, array) for name, array in sorted(outputs.items())}
    if not by_rows:
        return _dump({"outputs": columns if len(columns) > 1 else next(iter(columns.values()))})
    shapes = {name: list(outputs[name].shape) for name in columns}
    if (
        len({shape[0] if shape else None for shape in shapes.values()}) != 1
        or [] in shapes.values()
    ):
        raise invalid(f"Use 'inputs', since the outputs are not rows. Shapes: {shapes}.")
    if len(columns) == 1:
        return _dump({"predictions": next(iter(columns.values()))})
    rows = zip(*columns.values(), strict=True)
    return _dump({"predictions": [dict(zip(columns, row, strict=True)) for row in rows]})


def encode_error(message: str) -> bytes:
    """Returns the body of an error."""
    return _dump({"error": message})


def _row_columns(rows: list[Any], names: list[str]) -> dict[str, list[Any]]:
    named = [isinstance(row, dict) and not _is_base64(row) for row in rows]
    if not any(named):
        return {_only(names, "instances"): rows}
    for position, row in enumerate(rows):
        if not named[position] or sorted(row) != names:
            raise invalid(
                f"Every value of 'instances' must be an object with the keys {', '.join(names)}. "
                f"Received at {position}: {_kind(row)}."
            )
    return {name: [row[name] for row in rows] for name in names}


def _columns(values: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(values, dict) or _is_base64(values):
        return {_only(names, "inputs"): values}
    missing = [name for name in names if name not in values]
    if missing:
        raise invalid(f"'inputs' must have the keys {', '.join(names)}. Missing: {missing[0]}.")
    return values


def _only(names: list[str], form: str) -> str:
    if len(names) != 1:
        raise invalid(f"{form!r} must be objects with the names of the inputs: {', '.join(names)}.")
    return names[0]


def _decode_tensor(name: str, value: Any, info: SignatureTensor) -> np.ndarray:
    items, shape = [value], []
    while items and type(items[0]) is list:
        lengths = {len(item) if type(item) is list else None for item in items}
        if len(lengths) != 1:
            raise invalid(f"The lists of input {name!r} must have equal lengths in each dimension.")
        if len(shape) == _MOST_DIMENSIONS:
            raise invalid(f"The lists of input {name!r} are nested too deeply.")
        shape.extend(lengths)
        items = list(itertools.chain.from_iterable(items))
    if info.dtype is None:
        raise RequestError(
            Code.UNIMPLEMENTED, f"Input {name!r} has a type that JSON does not support."
        )
    decode = _decode_strings if info.dtype == object else _decode_numbers
    return decode(name, items, info.dtype).reshape(shape)


def _decode_strings(name: str, items: list[Any], dtype: np.dtype) -> np.ndarray:
    array = np.empty(len(items), dtype)
    try:
        array[:] = [
            item.encode("utf-8")
            if type(item) is str
            else base64.b64decode(item["b64"], validate=True)
            if _is_base64(item)
            else _refuse(name, item, "a string")
            for item in items
        ]
    except UnicodeEncodeError:
        raise invalid(f"Input {name!r} contains half of a surrogate pair.") from None
    except (binascii.Error, ValueError):
        raise invalid(f"Input {name!r} contains no valid base64 under 'b64'.") from None
    return array


def _decode_numbers(name: str, items: list[Any], dtype: np.dtype) -> np.ndarray:
    allowed = _NUMBERS[dtype.kind]
    if not set(map(type, items)) <= allowed:
        wrong = next(item for item in items if type(item) not in allowed)
        _refuse(name, wrong, str(dtype))
    if dtype.kind in "iu" and items:
        bounds = np.iinfo(dtype)
        if min(items) < bounds.min or max(items) > bounds.max:
            raise invalid(f"Input {name!r} contains a number that is not a valid {dtype}.")
    try:
        wide = np.array(items, np.float64 if dtype.kind == "f" else dtype)
    except OverflowError:
        raise invalid(f"Input {name!r} contains a number that is not a valid {dtype}.") from None
    with np.errstate(over="ignore"):
        array = wide.astype(dtype)
    if dtype.kind == "f" and (np.isinf(array) & np.isfinite(wide)).any():
        raise invalid(f"Input {name!r} contains a number that is not a valid {dtype}.")
    return array


def _refuse(name: str, item: Any, expected: str) -> None:
    raise invalid(
        f"Input {name!r} must contain values of type {expected}. Received: {_kind(item)}."
    )


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value)) or f"{json.dumps(value):.40}"


def _encode_tensor(name: str, array: np.ndarray) -> Any:
    if array.dtype == object:
        encode = _encode_base64 if name.endswith(_BYTES_SUFFIX) else _encode_text
        return np.vectorize(encode, otypes=[object])(array).tolist()
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        # The shortest decimals that identify numbers of this dtype, not those of their doubles.
        return array.astype(str).astype(np.float64).tolist()
    return array.tolist()


def _listed(name: str, array: np.ndarray) -> Any:
    """An array as lists, row by row if it is large: other threads run between the rows."""
    if array.ndim == 0 or array.size <= VALUES_AT_ONCE:
        return _encode_tensor(name, array)
    if array.ndim == 1:
        begins = range(0, len(array), VALUES_AT_ONCE)
        parts = (_encode_tensor(name, array[begin : begin + VALUES_AT_ONCE]) for begin in begins)
        return [value for part in parts for value in part]
    return [_listed(name, row) for row in array]


def _encode_text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _encode_base64(content: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(content).decode("ascii")}


def _dump(content: Any, depth: int = 0) -> bytes:
    # By rows, between which other threads run.
    if depth < 3 and isinstance(content, dict):
        parts = (b"%s: %s" % (_dump(key, 3), _dump(content[key], depth + 1)) for key in content)
        return b"{%s}" % b", ".join(parts)
    if depth < 3 and isinstance(content, list) and content and isinstance(content[0], list | dict):
        return b"[%s]" % b", ".join(_dump(row, depth + 1) for row in content)
    return json.dumps(content, ensure_ascii=False, separators=(", ", ": ")).encode(
        "utf-8", "replace"
    )
