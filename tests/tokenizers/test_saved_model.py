"""A module that holds tokenizers, saved and run by TensorFlow and its text ops alone."""

import base64
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attn.tokenizers import train_tokenizer

TEXTS = ["the cat sat on the mat", "a Dog ate the cat", "THE 7 mats Σ", "cat a dog"] * 5
INPUTS = [b"The cat", b"", b"\xff\xfe dog", "ΑΣ new \U0001f600".encode(), b"mat"]

# What a server does: no keras_attn; a Session that is fed and fetched by the signature's names.
SCRIPT = """
import base64, json, sys
import tensorflow as tf
import tensorflow_text
folder, *inputs = sys.argv[1:]
inputs = [base64.b64decode(text) for text in inputs]
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
    signature = meta.signature_def["serving_default"]
    fetches = {name: info.name for name, info in signature.outputs.items()}
    outputs = session.run(fetches, {signature.inputs["text"].name: inputs})
assert not [name for name in sys.modules if name.startswith("keras_attn")]
print(json.dumps({
    "ids": outputs["ids"].tolist(),
    "text": [base64.b64encode(text).decode() for text in outputs["text"]],
}))
"""


class Echo(tf.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, text):
        ids = self.tokenizer.tokenize(text).to_tensor()
        return {"ids": ids, "text": self.tokenizer.detokenize(ids)}


@pytest.fixture(scope="module", params=["characters", "symbols", "sentencepiece"])
def saved(request, tmp_path_factory):
    options = {"vocabulary_size": 31} if request.param == "sentencepiece" else {}
    module = Echo(train_tokenizer(request.param, TEXTS, lowercase=True, **options))
    folder = tmp_path_factory.mktemp(request.param)
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    return module, folder


def test_loaded_in_this_process(saved):
    module, folder = saved
    expected = module.serve(tf.constant(INPUTS))
    assert expected["text"].numpy()[0] == b"the cat"
    received = tf.saved_model.load(str(folder)).signatures["serving_default"](tf.constant(INPUTS))
    np.testing.assert_array_equal(received["ids"], expected["ids"])
    np.testing.assert_array_equal(received["text"], expected["text"])


def test_loaded_in_a_session_of_a_fresh_process(saved):
    module, folder = saved
    inputs = [base64.b64encode(text).decode() for text in INPUTS]
    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *inputs],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    received = json.loads(output.splitlines()[-1])
    expected = module.serve(tf.constant(INPUTS))
    assert received["ids"] == expected["ids"].numpy().tolist()
    texts = [base64.b64decode(text) for text in received["text"]]
    assert texts == expected["text"].numpy().tolist()


def test_the_graph_holds_nothing_a_server_cannot_run(saved):
    _, folder = saved
    proto = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    graph = proto.meta_graphs[0].graph_def
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    kinds = {node.op for node in nodes}
    assert "StaticRegexReplace" in kinds
    assert not {kind for kind in kinds if "PyFunc" in kind or kind.startswith("Xla")}
