"""The graph of an export holds everything once, and computes what the traced one does."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_attn.export import CppSavedModel
from keras_attn.export.compaction import compact_saved_model

pytestmark = pytest.mark.tensorflow


def meta_graph_of(folder):
    return SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]


def functions_of(folder):
    return {each.signature.name: each for each in meta_graph_of(folder).graph_def.library.function}


def computed(name, functions):
    """What a function computes, as nested tuples without a name: each output by its origin."""
    function = functions[name]
    arguments = {each.name: number for number, each in enumerate(function.signature.input_arg)}
    nodes = {node.name: node for node in function.node_def}
    order = {node.name: number for number, node in enumerate(function.node_def)}

    def of(reference):
        node, *output = reference.removeprefix("^").split(":")
        return (arguments.get(node), order.get(node), *output, reference[0] == "^")

    def attribute(value):
        called = [each.name for each in (value.func, *value.list.func) if each.name]
        return tuple(computed(each, functions) for each in called) or value.SerializeToString(
            deterministic=True
        )

    return (
        tuple(argument.type for argument in function.signature.input_arg),
        function.attr["_input_shapes"].SerializeToString(),
        tuple(
            (
                node.op,
                tuple(map(of, node.input)),
                tuple(
                    (key, attribute(node.attr[key]))
                    for key in sorted(node.attr)
                    if key not in ("_gradient_op_type", "_output_shapes")
                ),
            )
            for node in nodes.values()
        ),
        tuple(of(function.ret[each.name]) for each in function.signature.output_arg),
    )


def check_once(folder):
    functions = functions_of(folder)
    named = set(meta_graph_of(folder).object_graph_def.concrete_functions)
    bodies = {}
    for name in functions:
        bodies.setdefault(computed(name, functions), []).append(name)
    assert [names for names in bodies.values() if len({*names} - named) > 1] == []
    for function in functions.values():
        constants = [
            (node.attr["value"].SerializeToString(), node.device)
            for node in function.node_def
            if node.op == "Const" and not node.input  # of a control dependency
        ]
        assert len(set(constants)) == len(constants)
    return functions


def test_every_function_body_and_every_constant_is_there_once(tiny_export):
    functions = check_once(tiny_export)
    loops = [node for each in functions.values() for node in each.node_def if "While" in node.op]
    bodies = {node.attr["body"].func.name for node in loops}
    # Texts and token ids are searched by the same loops, for one hypothesis and for several.
    searching = [name for name in bodies if len(functions[name].node_def) > 100]
    assert len(searching) == 2


def save(folder, **signatures):
    module = tf.Module()
    spec = tf.TensorSpec([None], tf.float32, name="x")
    concrete = {
        name: tf.function(function, autograph=False).get_concrete_function(spec)
        for name, function in signatures.items()
    }
    tf.saved_model.save(module, str(folder), concrete)
    return folder


def looped(step, times):
    """A function that calls another one in a loop, traced anew at each call."""

    def loop(x):
        traced = tf.function(step, autograph=False)
        state = (tf.constant(0), x)
        found = tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, traced(y)), state)
        return {"y": found[1]}

    return lambda x: loop(tf.identity(x) if times == 2 else x)


STEPS = {"twice": lambda x: x * 2.0, "thrice": lambda x: x * 3.0, "more": lambda x: x + 2.0}


@pytest.fixture
def made(tmp_path):
    """Signatures that share loops or steps; each of them is traced by itself."""
    signatures = {
        f"{name}_{times}": looped(step, times)
        for (name, step), times in itertools.product(STEPS.items(), (2, 5))
    }
    again = {f"{name}_again": looped(STEPS["twice"], 2) for name in ("same", "also")}
    return save(tmp_path / "made", serving_default=looped(STEPS["more"], 2), **signatures, **again)


def test_what_is_equal_but_for_names_is_merged_and_nothing_else(made):
    x, before = np.float32([1, -2, 7]), len(functions_of(made))
    compact_saved_model(made)
    functions = check_once(made)
    assert len(functions) < before
    steps = {computed(name, functions) for name in functions if len(functions[name].node_def) < 4}
    assert len([each for each in steps if any("Mul" in node[0] for node in each[2])]) == 2
    with CppSavedModel(made) as model:
        for name, expected in {
            "serving_default": x + 4,
            "more_2": x + 4,
            "more_5": x + 10,
            "twice_2": 4 * x,
            "same_again": 4 * x,
            "also_again": 4 * x,
            "twice_5": 32 * x,
            "thrice_2": 9 * x,
            "thrice_5": 243 * x,
        }.items():
            np.testing.assert_array_equal(model.run(name, {"x": x})["y"], expected)
    loaded = tf.saved_model.load(str(made))
    np.testing.assert_array_equal(loaded.signatures["thrice_5"](tf.constant(x))["y"], 243 * x)


def test_what_tensorflow_knows_of_the_signatures_stays(made):
    def described():
        loaded = tf.saved_model.load(str(made)).signatures
        return {name: repr(each.structured_outputs) for name, each in loaded.items()}

    before = described()
    fingerprint = tf.saved_model.experimental.read_fingerprint(str(made))
    compact_saved_model(made)
    assert described() == before
    changed = tf.saved_model.experimental.read_fingerprint(str(made))
    assert changed.saved_model_checksum != fingerprint.saved_model_checksum
    assert changed.signature_def_hash == fingerprint.signature_def_hash


def test_a_gradient_through_a_compact_graph(tmp_path):
    folder = save(tmp_path / "made", a=looped(STEPS["thrice"], 2), b=looped(STEPS["thrice"], 2))
    compact_saved_model(folder)
    signature = tf.saved_model.load(str(folder)).signatures["b"]
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = signature(x)["y"]
    np.testing.assert_array_equal(tape.gradient(y, x), [9.0, 9.0])
