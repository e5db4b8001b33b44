"""The Vision Transformer: what PyTorch computes, published sizes, mechanisms, saving.

The file of numbers was made by make_vit_golden.py with the version of PyTorch that it names.
"""

import pathlib

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.models import PatchEncoder, SequenceClassifier
from keras_attn.models.parameter_count import parameter_count
from keras_attn.validation import UserError
from tests.backends import thinned
from tests.harness import numbers, numpy
from tests.layers.judges import spread_weights
from tests.models.families import SMALL, losses_of
from tests.models.test_torch_golden import torch_name
from tests.refusals import refused

FILE = pathlib.Path(__file__).parents[1] / "golden" / "torch_vit.npz"
SIZES = SMALL | {"image_size": (6, 10), "patch_size": (3, 5)}
IMAGES = numbers(1, 2, 6, 10, 3)
# With the classifier of ImageNet's 1,000 classes, as in torchvision and timm; the paper's Table 1
# has 86, 307 and 632 millions.
PUBLISHED = {
    "vit_base_16": 86_567_656,
    "vit_base_32": 88_224_232,
    "vit_large_16": 304_326_632,
    "vit_large_32": 306_535_400,
    "vit_huge_14": 632_045_800,
}
VARIANTS = {
    "sinusoids, post-norm": {"learned_positions": False, "norm_first": False},
    "rotary, no token": {
        "absolute_positions": False,
        "rotary_positions": True,
        "class_token": False,
    },
    "local": {"attention": layers.LocalAttention(2, 3, 3)},
    "linear": {"attention": layers.LinearAttention(2, 3)},
    "synthesizer": {"attention": layers.RandomSynthesizer(2, 3, 13)},
}


def built(**arguments):
    return spread_weights(PatchEncoder(**(SIZES | arguments)))


def ours(name, array):
    """PyTorch's array in the layout of our weight."""
    if name == "patches.weight":  # (features, channels, height, width)
        return array.transpose(2, 3, 1, 0).reshape(-1, array.shape[0])
    if name in ("class_token", "positions"):
        return array[0, 0] if name == "class_token" else array[0]
    return array.T if array.ndim == 2 else array


def test_a_whole_model_of_pytorch():
    with np.load(FILE) as file:
        arrays = dict(file)
    model = SequenceClassifier(PatchEncoder(**SIZES, dropout=0.0), 5, "first", dropout=0.0)
    names = {
        "patches/kernel": "patches.weight",
        "patches/bias": "patches.bias",
        "class_token/vector": "class_token",
        "positions/embeddings": "positions",
        "output/kernel": "head.weight",
        "output/bias": "head.bias",
    }
    for weight in model.weights:
        name = names.get(weight.path) or torch_name(weight.path)
        weight.assign(ours(name, arrays.pop(f"weights/{name}")))
    assert sorted(arrays) == ["images", "logits", "outputs", "torch"]
    inputs = {"images": arrays["images"]}
    assert np.abs(arrays["logits"]).max() > 0.5
    np.testing.assert_allclose(numpy(model.encoder(inputs)), arrays["outputs"], atol=2e-5)
    np.testing.assert_allclose(numpy(model(inputs)), arrays["logits"], atol=2e-5)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    def make():
        return SequenceClassifier(PatchEncoder.from_preset(name), 1000, "first")

    assert parameter_count(make) == PUBLISHED[name]


@pytest.mark.parametrize("name", thinned(VARIANTS))
def test_every_patch_sees_every_other_and_where_it_stands(name):
    model = built(**VARIANTS[name])
    length = 4 + model.get_config()["class_token"]
    assert model.output_shape == (None, length, 12)
    changed = IMAGES.copy()
    changed[0, 5, 9] += 1  # in the last patch
    before, after = numpy(model({"images": IMAGES})), numpy(model({"images": changed}))
    difference = np.abs(after - before).max(-1)
    seen = difference[0] > 1e-5
    # A window of three positions, twice: the last patch is seen from four places on.
    assert seen[-length + 1 :].all() if name == "local" else seen.all()
    assert not difference[1].any()
    # The same patches in another order: not the same vectors in another order.
    turned = np.concatenate([IMAGES[:, 3:], IMAGES[:, :3]], axis=1)
    others = numpy(model({"images": turned}))[:, -4:]
    assert not np.allclose(np.roll(before[:, -4:], 2, axis=1), others, atol=1e-3)


def test_from_preset():
    small = PatchEncoder.from_preset("patch_tiny", num_layers=1)
    assert small.input["images"].shape == (None, 8, 8, 1)
    assert small.get_config()["num_layers"] == 1


@pytest.mark.slow
def test_a_classifier_learns_where_the_light_is():
    """In which half of an image one patch is brighter, with Keras' own `compile` and `fit`."""
    rng = np.random.default_rng(1)
    images = rng.normal(size=(256, 6, 10, 1)).astype("float32") / 4
    places = rng.integers(0, 4, 256)
    for image, place in zip(images, places, strict=True):
        image[3 * (place // 2) :, 5 * (place % 2) :][:3, :5] += 1
    sizes = SIZES | {"num_layers": 1, "channels": 1, "class_token": False}
    model = SequenceClassifier(PatchEncoder(**sizes), 2)
    history = losses_of(model, {"images": images}, places // 2, epochs=8)
    assert history[0] > 0.2
    assert history[-1] < 0.1


def test_mistakes_are_told():
    refused("Received: patch_size=4, height=6, width=10", built, patch_size=4)
    refused("Received: image_size=0", built, image_size=0)
    refused("Received: channels=-1", built, channels=-1)
    refused("Received: num_heads=5, hidden_dim=12", built, num_heads=5)
    with pytest.raises(UserError, match="`preset` must be one of 'patch_tiny', 'vit_base_16'"):
        PatchEncoder.from_preset("encoder_tiny")
