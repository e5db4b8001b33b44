"""Checks that TensorFlow Serving can load and run a SavedModel.

Each rule finds an error that otherwise appears late: a model that runs in Python and fails in the
server, or one that loads and fails on its first request.
"""

import re
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from keras_attn.export.c_api import STRING
from keras_attn.export.messages import GraphDef, MetaGraphDef, NodeDef, TensorProto
from keras_attn.export.runtime import SignatureTensor, read_meta_graph, read_signatures
from keras_attn.model_versions import SAVED_MODEL, latest_version

_PYTHON_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
# Names that TensorFlow and Keras generate for tensors without a name.
_MADE_UP = re.compile(r"(keras_tensor|args|arg|inputs?|outputs?|unknown)(_\d+)*")
_SOURCE_FILE = re.compile(rb"(?:/|[A-Za-z]:[\\/])(?:[\w.@+ -]+[\\/])+[\w.-]+\.pyc?\b")
_PATH = re.compile(rb"(?:/[\w.@+~ -]+){2,}/?|[A-Za-z]:\\[^\n]+")


def lint_saved_model(
    folder: str | Path, served_ops: Set[str], allow_xla: bool = False
) -> list[str]:
    """Finds the problems that TensorFlow Serving would have with a SavedModel.

    Args:
        folder: A version folder, or the folder above.
        served_ops: Names of the ops that the server supports, see `served_ops()`.
        allow_xla: Whether the SavedModel is meant for a server with XLA compilation enabled.

    Returns:
        The problems, one line each; an empty list if there are none.

    Raises:
        UserError: There is no SavedModel, or it is damaged.

    Examples:
        >>> lint_saved_model("exported/reviews", served_ops())
        []
        >>> print(*lint_saved_model("exported/reviews", served_ops() - {"MatMul"}))
        Op MatMul is not supported by TensorFlow Serving: function '...'.
    """
    folder = latest_version(folder)
    meta_graph = read_meta_graph(folder)
    findings = [*_signature_findings(meta_graph), *_op_findings(meta_graph.graph_def, served_ops)]
    if not allow_xla:
        findings += _xla_findings(meta_graph.graph_def)
    return findings + _path_findings(folder, meta_graph.graph_def)


def _signature_findings(meta_graph: MetaGraphDef) -> Iterator[str]:
    signatures = read_signatures(meta_graph)
    if "serving_default" not in signatures:
        yield "There is no signature 'serving_default', the default of requests."
    for name, signature in signatures.items():
        if not signature.outputs:
            yield f"Signature {name!r} has no output."
        for what, tensors in (("Input", signature.inputs), ("Output", signature.outputs)):
            for key, tensor in tensors.items():
                title = f"{what} {key!r} of signature {name!r}"
                yield from _tensor_findings(title, what, key, tensor)


def _tensor_findings(title: str, what: str, key: str, tensor: SignatureTensor) -> Iterator[str]:
    if _MADE_UP.fullmatch(key):
        yield f"{title} has a generated name: name {what.lower()}s after their contents."
    if not tensor.tensor:
        yield f"{title} is composite (ragged or sparse): only dense tensors can be served."
    elif tensor.shape is None:
        yield f"{title} has an unknown rank: dimension 0 must be the batch."
    elif not tensor.shape:
        yield f"{title} is a scalar: dimension 0 must be the batch."
    elif tensor.shape[0] is not None:
        yield f"{title} has {tensor.shape[0]} fixed rows: dimension 0 must be the batch."


def _nodes(graph: GraphDef) -> Iterator[tuple[str, NodeDef]]:
    """Yields every node with its graph or function."""
    yield from (("the main graph", node) for node in graph.node)
    for function in graph.library.function:
        where = f"function {function.signature.name!r}"
        yield from ((where, node) for node in function.node_def)


def _op_findings(graph: GraphDef, served_ops: Set[str]) -> Iterable[str]:
    functions = {function.signature.name for function in graph.library.function}
    findings: dict[str, str] = {}
    for where, node in _nodes(graph):
        if node.op in _PYTHON_OPS:
            finding = f"Op {node.op} calls Python, which is not available in a server: {where}."
        elif node.op not in served_ops and node.op not in functions:
            finding = f"Op {node.op} is not supported by TensorFlow Serving: {where}."
        else:
            continue
        findings.setdefault(node.op, finding)
    return findings.values()


def _xla_findings(graph: GraphDef) -> Iterable[str]:
    findings: dict[str, str] = {}
    needs = "needs XLA, which is disabled in TensorFlow Serving"
    for where, node in _nodes(graph):
        if node.op.startswith("Xla"):
            findings.setdefault(node.op, f"Op {node.op} {needs}: {where}.")
        if node.attr["_XlaMustCompile"].b if "_XlaMustCompile" in node.attr else False:
            findings.setdefault(where, f"Node {node.name!r} {needs} (jit_compile): {where}.")
    for function in graph.library.function:
        if "_XlaMustCompile" in function.attr and function.attr["_XlaMustCompile"].b:
            name = function.signature.name
            findings.setdefault(name, f"Function {name!r} {needs} (jit_compile).")
    return findings.values()


def _path_findings(folder: Path, graph: GraphDef) -> list[str]:
    """Finds paths of the exporting machine in debug information and constants.

    Only constants of one string are checked, because a vocabulary may contain any text.
    """
    findings: dict[Path | bytes, str] = {}
    debug = (folder / "debug").rglob("*") if (folder / "debug").is_dir() else ()
    for path in (folder / SAVED_MODEL, *sorted(debug)):
        found = _SOURCE_FILE.search(path.read_bytes()) if path.is_file() else None
        if found:
            file = path.relative_to(folder)
            findings[path] = f"{file} names a source file: {_shown(found.group())}."
    for where, node in _nodes(graph):
        value = _scalar_string(node.attr["value"].tensor) if node.op == "Const" else b""
        if _PATH.fullmatch(value):
            finding = f"Constant {node.name!r} is an absolute path: {_shown(value)}: {where}."
            findings.setdefault(value, finding)
    return list(findings.values())


def _scalar_string(tensor: TensorProto) -> bytes:
    scalar = tensor.dtype == STRING and not tensor.tensor_shape.dim
    return tensor.string_val[0] if scalar and len(tensor.string_val) == 1 else b""


def _shown(path: bytes) -> str:
    return repr(path.decode("utf-8", "replace"))
