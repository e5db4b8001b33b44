"""Models of the zoo, saved here, are the same in a fresh process."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import (
    Bert,
    CausalTransformer,
    FeatureEncoder,
    MaskedLanguageModel,
    PatchEncoder,
    SequenceClassifier,
    TransformerEncoder,
)
from tests.harness import LOAD, numbers, numpy
from tests.layers.judges import spread_weights

SIZES = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
TOKENS = {"token_ids": np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")}
NOT_TOKENS = {
    "patches": {"images": numbers(1, 2, 6, 10, 3)},
    "features": {
        "features": numbers(2, 2, 9, 5),
        "padding_mask": np.arange(9) < np.array([[9], [4]]),
    },
}
MAKE = {
    "encoder": lambda: TransformerEncoder(
        11, **SIZES, attention=layers.LSHAttention(2, 3, 4, chunk_length=3)
    ),
    "bert": lambda: Bert(11, **SIZES, max_length=13, num_segments=3),
    "masked": lambda: MaskedLanguageModel(Bert(11, **SIZES, max_length=13)),
    "classifier": lambda: SequenceClassifier(
        TransformerEncoder(11, **SIZES, norm_first=True, learned_positions=13), 3, "max"
    ),
    "causal": lambda: CausalTransformer(
        11, **SIZES, self_attention=layers.RandomSynthesizer(2, 3, 13)
    ),
    "patches": lambda: SequenceClassifier(
        PatchEncoder((6, 10), (3, 5), **SIZES, attention=layers.LinearAttention(2, 3)), 3, "first"
    ),
    "features": lambda: SequenceClassifier(
        FeatureEncoder(5, layers.ConvolutionalSubsampling(12, strides=(2,)), **SIZES), 3
    ),
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """What each model gives here, and what a fresh process makes of its file."""
    folder = tmp_path_factory.mktemp("models")
    expected = {}
    for name, make in MAKE.items():
        model = spread_weights(make())
        model.save(folder / f"{name}.keras")
        inputs = NOT_TOKENS.get(name, TOKENS)
        np.savez(folder / f"{name}.inputs.npz", **inputs)
        expected[name] = numpy(model(inputs))
    code = LOAD.replace("import keras_attn.layers", "import keras_attn.models")
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env=os.environ | {"KERAS_BACKEND": keras.backend.backend()},
        cwd=pathlib.Path(__file__).resolve().parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads((folder / "errors.json").read_text()) == {}
    return expected, {name: np.load(folder / f"{name}.outputs.npz") for name in MAKE}


@pytest.mark.tensorflow  # the file is the same on every backend
@pytest.mark.parametrize("name", MAKE)
def test_a_saved_model_is_the_same_in_a_fresh_process(name, loaded):
    expected, found = loaded
    np.testing.assert_array_equal(found[name]["arr_0"], expected[name])
