"""Models of the zoo, saved here, are the same in a fresh process."""

from functools import partial

import numpy as np
import pytest

from keras_attn import layers, models
from tests.harness import load_elsewhere, numbers, numpy
from tests.layers.judges import spread_weights
from tests.models.families import INPUTS, SMALL, made

TOKENS = {"token_ids": np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")}
SEQ2SEQ = ("additive LSTM", "multi-head, fed", "intra-attention", "GNMT", "convolutions")
INPUTS_OF = dict.fromkeys(SEQ2SEQ, INPUTS) | {
    "ensemble": INPUTS,
    "patches": {"images": numbers(1, 2, 6, 10, 3)},
    "features": {
        "features": numbers(2, 2, 9, 5),
        "padding_mask": np.arange(9) < np.array([[9], [4]]),
    },
}
ENCODERS = {
    "encoder": lambda: models.TransformerEncoder(
        11, **SMALL, attention=layers.LSHAttention(2, 3, 4, chunk_length=3)
    ),
    "bert": lambda: models.Bert(11, **SMALL, max_length=13, num_segments=3),
    "masked": lambda: models.MaskedLanguageModel(models.Bert(11, **SMALL, max_length=13)),
    "classifier": lambda: models.SequenceClassifier(
        models.TransformerEncoder(11, **SMALL, norm_first=True, learned_positions=13), 3, "max"
    ),
    "causal": lambda: models.CausalTransformer(
        11, **SMALL, self_attention=layers.RandomSynthesizer(2, 3, 13)
    ),
    "ensemble": lambda: models.Ensemble(
        [models.Transformer(11, **SMALL), models.RecurrentSeq2Seq(11, hidden_dim=6)]
    ),
    "patches": lambda: models.SequenceClassifier(
        models.PatchEncoder((6, 10), (3, 5), **SMALL, attention=layers.LinearAttention(2, 3)),
        3,
        "first",
    ),
    "features": lambda: models.SequenceClassifier(
        models.FeatureEncoder(5, layers.ConvolutionalSubsampling(12, strides=(2,)), **SMALL), 3
    ),
}
MAKE = {
    **{name: lambda make=make: spread_weights(make()) for name, make in ENCODERS.items()},
    **{name: partial(made, name) for name in SEQ2SEQ},
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """What each model gives here, and what a fresh process makes of its file."""
    folder = tmp_path_factory.mktemp("models")
    expected = {}
    for name, make in MAKE.items():
        model, inputs = make(), INPUTS_OF.get(name, TOKENS)
        model.save(folder / f"{name}.keras")
        np.savez(folder / f"{name}.inputs.npz", **inputs)
        expected[name] = numpy(model(inputs))
    assert load_elsewhere(folder, "keras_attn.models") == {}
    return expected, {name: np.load(folder / f"{name}.outputs.npz") for name in MAKE}


@pytest.mark.tensorflow  # the file is the same on every backend
@pytest.mark.parametrize("name", MAKE)
def test_a_saved_model_is_the_same_in_a_fresh_process(name, loaded):
    expected, found = loaded
    np.testing.assert_array_equal(found[name]["arr_0"], expected[name])
