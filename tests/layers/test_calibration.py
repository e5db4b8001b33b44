"""GPTQ and AWQ see what each layer is called with, and quantize it as Keras' classes do.

The judge is a dense layer of Keras, given to Keras' class with the inputs of ours.
"""

import keras
import numpy as np
import pytest
from keras.quantizers import AWQConfig, GPTQConfig
from keras.src.quantizers.awq import AWQ
from keras.src.quantizers.gptq import GPTQ

from keras_attn.layers import DenseSynthesizer
from keras_attn.layers.attention.head_projection import HeadProjection
from keras_attn.layers.dense import Dense
from keras_attn.models import CausalTransformer, TransformerEncoder
from tests.harness import numpy
from tests.refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")

# No square kernels: Keras' `ops.add` takes their zero points, (units, 1), for a row.
SIZES = {
    "num_layers": 1,
    "hidden_dim": 8,
    "num_heads": 2,
    "key_dim": 5,
    "value_dim": 5,
    "intermediate_dim": 11,
    "dropout": 0.0,
}
IDS = np.random.default_rng(1).integers(1, 31, (3, 9)).astype("int32")
MODES = {
    "gptq": (GPTQConfig, GPTQ.update_hessian_with_batch, GPTQ.quantize_and_correct_layer),
    "awq": (AWQConfig, AWQ.update_activation_magnitudes, AWQ.quantize_layer),
}
CLASSES = {"gptq": GPTQ, "awq": AWQ}


class Ids:
    """Texts that are ids already."""

    def tokenize(self, ids):
        return ids


def config(mode):
    of_mode = {"gptq": {"weight_bits": 8}, "awq": {"num_grid_points": 3}}
    return MODES[mode][0](
        dataset=list(IDS),
        tokenizer=Ids(),
        num_samples=len(IDS),
        sequence_length=IDS.shape[1],
        group_size=-1,
        **of_mode[mode],
    )


def of_a_block(layer):
    return "block" in str(layer.path)


def dense_layers(model):
    layers = (part for part in model._flatten_layers() if isinstance(part, Dense))
    return {layer.path: layer for layer in layers if of_a_block(layer)}


def calibrated(model, mode, monkeypatch):
    """Quantizes a model, and notes what each layer's calibration was given."""
    seen = {}
    _, update, _ = MODES[mode]

    def noting(calibration, inputs):
        seen.setdefault(calibration.original_layer.path, []).append(numpy(inputs))
        return update(calibration, inputs)

    with monkeypatch.context() as patched:
        patched.setattr(CLASSES[mode], update.__name__, noting)
        model.quantize(mode, config=config(mode), filters=of_a_block)
    return seen


@pytest.mark.parametrize(
    ("family", "mode"), [(TransformerEncoder, "gptq"), (CausalTransformer, "awq")]
)
def test_calibrated_by_what_each_layer_is_called_with(family, mode, monkeypatch):
    keras.utils.set_random_seed(1)
    model = family(31, **SIZES)
    exact = numpy(model({"token_ids": IDS}))
    layers = dense_layers(model)
    weights = {path: [numpy(w) for w in layer.weights] for path, layer in layers.items()}
    seen = calibrated(model, mode, monkeypatch)
    assert set(seen) == set(layers)
    assert all(len(inputs) == len(IDS) and np.abs(inputs).max() > 0.1 for inputs in seen.values())
    _, update, quantize = MODES[mode]
    for path, layer in layers.items():
        judge = keras.layers.Dense(layer.units)
        judge.build((None, weights[path][0].shape[0]))
        judge.set_weights(weights[path])
        judge.quantize(mode, config=config(mode))
        calibration = CLASSES[mode](judge, config(mode))
        for inputs in seen[path]:
            update(calibration, keras.ops.convert_to_tensor(inputs))
        quantize(calibration)
        for attribute in ("quantized_kernel", "kernel_scale", "kernel_zero"):
            expected = numpy(getattr(judge, attribute))
            np.testing.assert_allclose(numpy(getattr(layer, attribute)), expected, rtol=1e-6)
        # And computes as Keras' layer does.
        rows = seen[path][0]
        found = layer(rows[None])
        if isinstance(layer, HeadProjection):
            found = [numpy(x).transpose(0, 2, 1, 3).reshape(1, len(rows), -1) for x in found]
            found = np.concatenate(found, -1)
        plain = keras.activations.get(layer.activation)(judge(rows))
        np.testing.assert_allclose(numpy(found)[0], numpy(plain), rtol=1e-4, atol=1e-5)
    assert np.abs(numpy(model({"token_ids": IDS})) - exact).max() > 1e-4


@pytest.mark.parametrize("mode", MODES)
def test_kernels_of_single_heads_are_not_calibrated(mode):
    model = TransformerEncoder(31, **SIZES, attention=DenseSynthesizer(2, 4, max_length=9))
    refused("leave them out", model.quantize, mode, config=config(mode), filters=of_a_block)
