"""A module that holds tokenizers, saved and run by TensorFlow and its text ops alone."""

import base64
import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attn.export import served_ops
from keras_attn.tokenizers import train_tokenizer
from tests.harness import run_python
from tests.tokenizers.golden import KINDS

TEXTS = ["the cat sat on the mat", "a Dog ate the cat", "THE 7 mats Σ", "cat a dog"] * 5
INPUTS = [b"The cat", b"", b"\xff\xfe dog", "ΑΣ new \U0001f600".encode(), b"mat"]

# What a server does: no keras_attn; a Session that is fed and fetched by the signature's names.
SCRIPT = """
import base64, json, sys
import tensorflow as tf
import tensorflow_text
inputs = [base64.b64decode(text) for text in json.loads(sys.argv[1])]
for folder in sys.argv[2:]:
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        fetches = {name: info.name for name, info in signature.outputs.items()}
        outputs = session.run(fetches, {signature.inputs["text"].name: inputs})
    print(json.dumps({
        "ids": outputs["ids"].tolist(),
        "text": [base64.b64encode(text).decode() for text in outputs["text"]],
    }))
assert not [name for name in sys.modules if name.startswith("keras_attn")]
"""


class Echo(tf.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text):
        ids = self.tokenizer.tokenize(text).to_tensor()
        return {"ids": ids, "text": self.tokenizer.detokenize(ids)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    pairs = {}
    for kind, options in KINDS.items():
        module = Echo(train_tokenizer(kind, TEXTS, lowercase=True, **options))
        folder = tmp_path_factory.mktemp(kind)
        tf.saved_model.save(module, str(folder), signatures=module.serve)
        pairs[kind] = (module, folder)
    return pairs


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_in_this_process(saved, kind):
    module, folder = saved[kind]
    expected = module.serve(tf.constant(INPUTS))
    assert expected["text"].numpy()[0] == b"the cat"
    received = tf.saved_model.load(str(folder)).signatures["serving_default"](tf.constant(INPUTS))
    np.testing.assert_array_equal(received["ids"], expected["ids"])
    np.testing.assert_array_equal(received["text"], expected["text"])


@pytest.mark.slow
def test_loaded_in_sessions_of_a_fresh_process(saved):
    inputs = json.dumps([base64.b64encode(text).decode() for text in INPUTS])
    folders = [str(folder) for _, folder in saved.values()]
    printed = run_python(SCRIPT, inputs, *folders)
    for line, (module, _) in zip(printed.splitlines(), saved.values(), strict=True):
        received = json.loads(line)
        expected = module.serve(tf.constant(INPUTS))
        assert received["ids"] == expected["ids"].numpy().tolist()
        texts = [base64.b64decode(text) for text in received["text"]]
        assert texts == expected["text"].numpy().tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_graph_holds_nothing_a_server_cannot_run(saved, kind):
    contents = (saved[kind][1] / "saved_model.pb").read_bytes()
    graph = saved_model_pb2.SavedModel.FromString(contents).meta_graphs[0].graph_def
    ops = {node.op for node in graph.node}
    ops |= {node.op for function in graph.library.function for node in function.node_def}
    assert "StaticRegexReplace" in ops
    assert not {op for op in ops if "PyFunc" in op or op.startswith("Xla")}
    functions = {function.signature.name for function in graph.library.function}
    assert ops - functions <= served_ops()
