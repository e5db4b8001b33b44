"""What an export says that a model attends to, held against what the model shows in Python."""

import json

import numpy as np
import tensorflow as tf

from keras_attn.export.golden import read_golden
from keras_attn.tasks.attention import GROUPS, attention_group
from keras_attn.visualization import attention_maps


def check_served_attention(task, folder):
    """The golden outputs, which `verify` has compared with those of the C++ runtime.

    Each example is read alone here, and in a batch with others there.
    """
    ((inputs, outputs),) = (
        pair for name, *pair in read_golden(folder).examples if name == "attention"
    )
    strings = [inputs[name] for name in ("text", "target", "image_bytes") if name in inputs]
    if "past" in inputs:  # numbers, which a forecaster reads from JSON
        rows = zip(*(values.tolist() for values in inputs.values()), strict=True)
        strings = [np.array([json.dumps(dict(zip(inputs, row, strict=True))) for row in rows])]
    if "passage" in inputs:  # read in one string
        strings = [inputs["query"] + b"\t" + inputs["passage"]]
    if "context" in inputs:
        strings = [inputs["question"] + b"\t" + inputs["context"]]
    assert len(strings[0]) == 2
    for row in range(2):
        reading = task.read_tokens(*(tf.constant(column[row : row + 1]) for column in strings))
        groups = {}
        for found in (m.example() for m in attention_maps(task.backbone, reading.inputs)):
            name = attention_group(found.name, found.crosses, found.is_causal)
            groups.setdefault(name, []).append(found.weights[0])
        assert set(groups) == set(outputs) & set(GROUPS)
        for name, layers in groups.items():
            served = outputs[name][row]
            places = [np.flatnonzero(outputs[f"{name}_{at}"][row]) for at in ("rows", "columns")]
            assert served.shape[2:] == tuple(
                outputs[f"{name}_{at}"].shape[1] for at in ("rows", "columns")
            )
            assert np.shape(layers)[2:] == tuple(map(len, places))
            expected = np.zeros_like(served)
            expected[:, :, places[0][:, None], places[1]] = layers
            np.testing.assert_allclose(served, expected, rtol=1e-4, atol=1e-6)
