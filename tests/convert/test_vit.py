"""ViT and DeiT, judged by what transformers computes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.convert import convert_huggingface
from keras_attn.export import export_saved_model, verify
from keras_attn.tasks import open_exported
from tests.backends import thinned
from tests.convert.made import GOLDEN, change_json, config, converted, copy_of, loaded
from tests.harness import arrays_of
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow

OUTPUTS = arrays_of(GOLDEN / "vit_outputs.npz")
NAMES = ("vit", "deit")


@pytest.mark.parametrize("name", thinned(NAMES))
def test_probabilities_are_those_of_transformers(name, tmp_path):
    task = converted(GOLDEN / name)
    images = [tf.io.encode_png(pixels).numpy() for pixels in OUTPUTS["pixels"]]
    logits = OUTPUTS[name]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.ptp(expected, axis=0).max() > 0.05
    np.testing.assert_allclose(task.probabilities(images), expected, atol=1e-5)
    labels = [("cat", "dog", "fox", "hen")[place] for place in expected.argmax(axis=1)]
    folder = export_saved_model(task, tmp_path / "exported")
    assert verify(folder).ok
    for one in (task, loaded(task, tmp_path), open_exported(folder)):
        assert one.predict(images) == labels


MISTAKES = {
    "no head": (config(architectures=["ViTModel"]), "`architectures` must be one of 'ViTForImage"),
    "biases": (config(qkv_bias=False), "`qkv_bias` must be True"),
    "key": (config(colour=1), "`colour` is not supported"),
    "patch": (config(patch_size=3), "config.json: `patch_size` must divide the height"),
    "size": (config(image_size=12), "position_embeddings .1, 5, 12. instead of .1, 10, 12."),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, tmp_path):
    spoil, message = MISTAKES[name]
    folder = copy_of(GOLDEN / "vit", tmp_path / "checkpoint")
    spoil(folder)
    refused_in_one_line(message, convert_huggingface, folder)


def test_what_becomes_of_pixels(tmp_path):
    folder = copy_of(GOLDEN / "vit", tmp_path / "checkpoint")
    path = folder / "preprocessor_config.json"
    change_json(path, do_center_crop=True)
    notes = convert_huggingface(folder).notes
    assert notes == (f"{path}: images are not cropped here, but resized to the model's size.",)
    change_json(path, image_std=[0.5, 0.5])
    refused_in_one_line("must have a number for each channel", convert_huggingface, folder)
    change_json(path, rescale_factor=1 / 127.5)
    refused_in_one_line("`rescale_factor` must be 1 / 255", convert_huggingface, folder)
