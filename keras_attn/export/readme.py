"""The README of an exported folder: its signatures, with example requests and answers."""

import base64
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.export.c_api import dtype_name
from keras_attn.export.golden import read_golden
from keras_attn.export.layout import README, template
from keras_attn.export.manifests import IMAGE
from keras_attn.export.runtime import Signature, SignatureTensor, read_meta_graph, read_signatures
from keras_attn.export_manifest import read_manifest

Arrays = Mapping[str, np.ndarray]

_DEFAULT = "serving_default"
_LONGEST_REQUEST = 500
_LONGEST_ANSWER = 5000
_LONGEST_LISTS = (12, 4, 2, 1)

_LEFT_OUT = """
There is no signature `{name}`. {reason}
"""


_COMPUTING = {
    "bfloat16": " The model computes in bfloat16.",
    "int8": " Products with them are of 8-bit integers, which are in the graph once more.",
}


def write_readme(version_folder: Path, name: str) -> None:
    """Writes the README of an export that is complete otherwise.

    Args:
        version_folder: Folder of the export.
        name: Name of the model when it is served.
    """
    manifest = read_manifest(version_folder)
    signatures = read_signatures(read_meta_graph(version_folder))
    examples = {name: pair for name, *pair in read_golden(version_folder).examples}
    inputs, outputs = examples[_DEFAULT]
    row = _chosen_row(inputs)
    first, several = _rows(inputs, [row]), _rows(inputs, [row, row + 1])
    jit = manifest["jit"]
    page = template("readme.md").format(
        name=name,
        task=manifest["task"],
        version=manifest["versions"]["keras_attn"],
        tensorflow=manifest["versions"]["tensorflow"],
        keras=manifest["versions"]["keras"],
        signatures=_signature_table(signatures),
        attention=template("attention.md") if "attention" in signatures else "",
        weights=_left_out(manifest["left_out"]) + _weights(manifest),
        image=IMAGE,
        flags=" --xla_cpu_compilation_enabled" if jit else "",
        xla=" It is compiled by XLA, so a server without a GPU needs this flag." if jit else "",
        row=_curl(name, row_request(first)),
        row_answer=_shown({"predictions": row_answer(_rows(outputs, [row]))}),
        column=_curl(name, {"inputs": _columns(several)}),
        column_answer=_shown({"outputs": column_answer(_rows(outputs, [row, row + 1]))}),
        json=repr(row_request(first)),
        inputs="\n".join(_fill(signatures[_DEFAULT], key, first[key]) for key in first),
    )
    others = "".join(_other(name, other, *pair) for other, pair in sorted(examples.items()))
    (version_folder / README).write_text(page + others, "utf-8")


def row_request(inputs: Arrays, signature: str = _DEFAULT) -> dict[str, Any]:
    """Returns the body of a request in TensorFlow Serving's row format.

    Args:
        inputs: The inputs of the signature.
        signature: Its name.
    """
    rows = len(next(iter(inputs.values())))
    columns = _columns(inputs)
    body = {"instances": [{key: columns[key][row] for key in columns} for row in range(rows)]}
    return body if signature == _DEFAULT else {"signature_name": signature} | body


def row_answer(outputs: Arrays) -> list[Any]:
    """Returns the answer of TensorFlow Serving to a request in row format.

    Args:
        outputs: The outputs of the signature; a single output has no name in the answer.
    """
    columns = _columns(outputs)
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return [row if len(row) > 1 else next(iter(row.values())) for row in rows]


def column_answer(outputs: Arrays) -> Any:
    """Returns the answer of TensorFlow Serving to a request in column format.

    Args:
        outputs: The outputs of the signature; a single output has no name in the answer.
    """
    columns = _columns(outputs)
    return columns if len(columns) > 1 else next(iter(columns.values()))


def _chosen_row(inputs: Arrays) -> int:
    """The first example with a short request, or the shortest example."""
    rows = range(len(next(iter(inputs.values()))))
    lengths = [len(json.dumps(row_request(_rows(inputs, [row])))) for row in rows]
    return next((row for row in rows if lengths[row] < _LONGEST_REQUEST), int(np.argmin(lengths)))


def _rows(arrays: Arrays, rows: list[int]) -> dict[str, np.ndarray]:
    return {
        name: array[[row for row in rows if row < len(array)]] for name, array in arrays.items()
    }


def _columns(arrays: Arrays) -> dict[str, list]:
    """Arrays as JSON values, without padding common to all rows of ids."""
    return {name: _plain(_trimmed(array), name) for name, array in sorted(arrays.items())}


def _trimmed(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "i" or array.ndim != 2:
        return array
    used = np.flatnonzero(array.any(axis=0))
    return array[:, : used[-1] + 1 if used.size else 1]


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray | list):
        return [_plain(item, name) for item in value]
    if isinstance(value, bytes):
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(value).decode()}
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_):
        return bool(value)
    # The shortest number that is read as this one.
    return float(str(value)) if isinstance(value, np.floating) else int(value)


def _shown(value: Any) -> str:
    """JSON with lists shortened so that it is not too long."""
    answers = [_cut(value, longest) for longest in _LONGEST_LISTS]
    return next((answer for answer in answers if len(answer) < _LONGEST_ANSWER), answers[-1])


def _cut(value: Any, longest: int) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)}: {_cut(value[key], longest)}" for key in value)
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        cut = len(value) > longest
        items = [_cut(item, longest) for item in value[: (2 * longest + 1) // 3 if cut else None]]
        return "[" + ", ".join([*items, "…"] if cut else items) + "]"
    return json.dumps(value, ensure_ascii=False)


def _curl(name: str, body: Mapping[str, Any]) -> str:
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl -d {data} localhost:8501/v1/models/{name}:predict"


def _fill(signature: Signature, key: str, array: np.ndarray) -> str:
    """A line of Python that puts an input into a request."""
    dtype = dtype_name(signature.inputs[key].dtype)
    values = array.tolist() if key.endswith("_bytes") else _plain(array, key)
    return f'request.inputs["{key}"].CopyFrom(tf.make_tensor_proto({values!r}, dtype=tf.{dtype}))'


def _other(name: str, signature: str, inputs: Arrays, outputs: Arrays) -> str:
    row = _chosen_row(inputs)
    request = row_request(_rows(inputs, [row]), signature)
    if signature == _DEFAULT or len(json.dumps(request)) > _LONGEST_REQUEST:
        return ""
    answer = _shown({"predictions": row_answer(_rows(outputs, [row]))})
    return f"\n```\n{_curl(name, request)}\n{answer}\n```\n"


def _signature_table(signatures: Mapping[str, Signature]) -> str:
    lines = ["| signature | inputs | outputs |", "|---|---|---|"]
    for name, signature in signatures.items():
        inputs, outputs = _described(signature.inputs), _described(signature.outputs)
        lines.append(f"| `{name}` | {inputs} | {outputs} |")
    return "\n".join(lines)


def _described(tensors: Mapping[str, SignatureTensor]) -> str:
    return ", ".join(
        f"`{name}` {dtype_name(it.dtype)} {_shape(it)}" for name, it in tensors.items()
    )


def _shape(tensor: SignatureTensor) -> str:
    sizes = ["any" if size is None else str(size) for size in (tensor.shape or ())[1:]]
    return f"({', '.join(['batch', *sizes])})"


def _left_out(reasons: Mapping[str, str]) -> str:
    return "".join(_LEFT_OUT.format(name=name, reason=reasons[name]) for name in sorted(reasons))


def _weights(manifest: Mapping[str, Any]) -> str:
    weights, computing = manifest["weights"], _COMPUTING.get(manifest["compute"], "")
    if "change" not in weights:
        return ""
    rows = [
        f"| `{name}` | {change['changed']} | {change['largest_difference']:.2g} |"
        for name, change in weights["change"]["signatures"].items()
    ]
    return template("weights.md").format(
        smaller=weights["smaller"],
        computing=computing,
        dtype=weights["dtype"],
        before=weights["bytes_before"] / 2**20,
        after=weights["bytes"] / 2**20,
        examples=weights["change"]["examples"],
        rows="\n".join(rows),
    )
