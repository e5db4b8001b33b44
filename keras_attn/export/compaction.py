"""Makes the graph of a SavedModel smaller, without a change of what it computes.

TensorFlow traces what several signatures call once for each of them, writes each constant as often
as it is used, and notes shapes that it infers again when it loads the graph.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.saved_model import fingerprinting_utils

from keras_attn.model_versions import SAVED_MODEL


def compact_saved_model(folder: Path) -> None:
    """Rewrites the graph of a SavedModel with each constant and each function body once.

    The names of nodes, and of functions that belong to signatures or objects, are kept.

    Args:
        folder: The version folder.
    """
    path = folder / SAVED_MODEL
    saved_model = SavedModel.FromString(path.read_bytes())
    for meta_graph in saved_model.meta_graphs:
        objects = meta_graph.object_graph_def
        captured = {node.captured_tensor.concrete_function for node in objects.nodes} - {""}
        compact_graph(meta_graph.graph_def, set(objects.concrete_functions), captured)
    path.write_bytes(saved_model.SerializeToString(deterministic=True))
    fingerprinting_utils.write_fingerprint(str(folder))


def compact_graph(graph: GraphDef, named: set[str], captured: Collection[str] = ()) -> None:
    """Removes what a graph contains twice.

    Args:
        graph: The graph.
        named: Functions to keep.
        captured: Functions to keep whose constants an object refers to by name.
    """
    # An op that is a function refers to the names of its outputs.
    named = named.union(captured, (node.op for nodes in _nodes(graph) for node in nodes))
    for function in graph.library.function:
        _drop_inferred_shapes(function)
        if function.signature.name not in captured:
            _merge_constants(function)
    while same := _equal_functions(graph.library, named):
        # Functions that call equal ones may be equal after that.
        kept = [each for each in graph.library.function if each.signature.name not in same]
        graph.library.CopyFrom(FunctionDefLibrary(function=kept))
        for nodes in _nodes(graph):
            for node in nodes:
                _rename_functions(node, same)


def _nodes(graph: GraphDef) -> Iterator[Sequence[NodeDef]]:
    """Yields the nodes of the graph, then those of each function."""
    yield graph.node
    yield from (function.node_def for function in graph.library.function)


def _drop_inferred_shapes(function: FunctionDef) -> None:
    """Removes shapes of nodes inside a function; those of its outputs are part of its interface."""
    outputs = {reference.partition(":")[0] for reference in function.ret.values()}
    for node in function.node_def:
        if node.name not in outputs:
            node.attr.pop("_output_shapes", None)


def _merge_constants(function: FunctionDef) -> None:
    """Replaces equal constants by the first of them."""
    first: dict[bytes, str] = {}
    same: dict[str, str] = {}
    kept = []
    for node in function.node_def:
        if node.op == "Const" and not node.input:
            content = NodeDef(op=node.op, device=node.device, attr=node.attr)
            name = first.setdefault(content.SerializeToString(deterministic=True), node.name)
            if name != node.name:
                same[node.name] = name
                continue
        kept.append(node)
    if same:
        rest = FunctionDef(node_def=kept)
        del function.node_def[:]
        function.MergeFrom(rest)
        _rename_references(function, lambda name: same.get(name, name))


def _equal_functions(library: FunctionDefLibrary, named: set[str]) -> dict[str, str]:
    """For each function that another one can replace, the name of that one."""
    by_name = {function.signature.name: function for function in library.function}
    first: dict[bytes, str] = {}
    same = {}
    # Those that must be kept come first.
    for name in sorted(by_name, key=lambda name: name not in named):
        kept = first.setdefault(_content(by_name[name]), name)
        if kept != name and name not in named:
            same[name] = kept
    return same


def _content(function: FunctionDef) -> bytes:
    """A function with numbers in place of all names inside."""
    content = FunctionDef()
    content.CopyFrom(function)
    signature = content.signature
    numbers = _numbered([*signature.input_arg, *content.node_def])
    _rename_references(content, numbers.__getitem__)
    outputs = [content.ret[each.name] for each in signature.output_arg]
    content.ClearField("ret")
    content.ret.update({str(number): reference for number, reference in enumerate(outputs)})
    _numbered(signature.output_arg)
    signature.ClearField("name")
    for attributes in content.arg_attr.values():
        attributes.attr.pop("_user_specified_name", None)
    for node in content.node_def:
        # TensorFlow registers gradients under names of its own when it loads a graph.
        node.attr.pop("_gradient_op_type", None)
    return content.SerializeToString(deterministic=True)


def _numbered(named: Sequence[OpDef.ArgDef | NodeDef]) -> dict[str, str]:
    """Replaces names by numbers, and returns the numbers by name."""
    numbers = {each.name: str(number) for number, each in enumerate(named)}
    for each in named:
        each.name = numbers[each.name]
    return numbers


def _rename_references(function: FunctionDef, new_name: Callable[[str], str]) -> None:
    """Renames what the inputs of nodes and the outputs of a function refer to."""

    def renamed(reference: str) -> str:  # "^node", "argument" or "node:output:0"
        name, colon, output = reference.removeprefix("^").partition(":")
        return "^" * reference.startswith("^") + new_name(name) + colon + output

    for node in function.node_def:
        node.input[:] = [renamed(reference) for reference in node.input]
    for references in (function.ret, function.control_ret):
        for key, reference in list(references.items()):
            references[key] = renamed(reference)


def _rename_functions(node: NodeDef, same: Mapping[str, str]) -> None:
    """Renames the functions that a node calls."""
    for attr in node.attr.values():
        called = [attr.func] if attr.HasField("func") else attr.list.func
        for function in called:
            function.name = same.get(function.name, function.name)
