"""ViT and DeiT, judged by what transformers computes."""

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from keras_attn.convert import convert_huggingface, write_huggingface
from keras_attn.export import export_saved_model, verify
from keras_attn.models import PatchEncoder, SequenceClassifier
from keras_attn.tasks import ImageClassificationTask, open_exported
from tests.convert.made import GOLDEN, WEIGHTS, change_json, config, converted, copy_of, loaded
from tests.harness import arrays_of
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow

OUTPUTS = arrays_of(GOLDEN / "vit_outputs.npz")
# What they read, and the tolerance: Pillow rounds pixels between two passes.
NAMES = {"vit": ("pixels", 1e-5), "deit": ("pixels", 1e-5), "taught": ("large", 5e-3)}


def images_of(name):
    return [tf.io.encode_png(pixels).numpy() for pixels in OUTPUTS[NAMES[name][0]]]


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_those_of_transformers(name, tmp_path):
    task, images = converted(GOLDEN / name), images_of(name)
    logits = OUTPUTS[name]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.ptp(expected, axis=0).max() > 0.05
    np.testing.assert_allclose(task.probabilities(images), expected, atol=NAMES[name][1])
    labels = [("cat", "dog", "fox", "hen")[place] for place in expected.argmax(axis=1)]
    folder = export_saved_model(task, tmp_path / "exported")
    assert verify(folder).ok
    for one in (task, loaded(task, tmp_path), open_exported(folder)):
        assert one.predict(images) == labels


@pytest.mark.parametrize("name", NAMES)
def test_back_to_hugging_face(name, tmp_path):
    """The same tensors but for the first layer, which takes other pixels."""
    task, images = converted(GOLDEN / name), images_of(name)
    assert write_huggingface(task, tmp_path / "out") == ()
    found, given = (load_file(folder / WEIGHTS) for folder in (tmp_path / "out", GOLDEN / name))
    assert found.keys() == given.keys()
    for tensor in found:
        if "patch_embeddings" not in tensor and "_classifier" not in tensor:
            np.testing.assert_array_equal(found[tensor], given[tensor])
    again = converted(tmp_path / "out")
    np.testing.assert_allclose(again.probabilities(images), task.probabilities(images), atol=1e-6)
    assert again.resizing == task.resizing


def classifier(pooling="first", **sizes):
    """An image classifier that was made here."""
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 5} | sizes
    model = SequenceClassifier(PatchEncoder(8, 4, **sizes), 2, pooling)
    return ImageClassificationTask(model, ["a", "b"])


KEPT = {
    "mean": ({"pooling": "mean"}, "ViTForImageClassification .* counterpart of pooling='mean'"),
    "sinusoids": ({"learned_positions": False}, "counterpart of learned_positions=False"),
    "norm": ({"norm_first": False}, "counterpart of norm_first=False"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_counterpart_is_named(name, tmp_path):
    sizes, message = KEPT[name]
    refused_in_one_line(message, write_huggingface, classifier(**sizes), tmp_path / "out")


def test_what_was_made_here_goes_out_and_comes_back(tmp_path):
    task, images = classifier(random_shift=1, activation="relu"), images_of("vit")
    write_huggingface(task, tmp_path / "out")
    again = convert_huggingface(tmp_path / "out").task
    np.testing.assert_allclose(again.probabilities(images), task.probabilities(images), atol=1e-6)


@pytest.mark.parametrize(("name", "prefix"), [("vit", "vit."), ("deit", "deit.")])
def test_a_model_without_a_classifier_gets_a_new_one(name, prefix, tmp_path):
    folder = copy_of(GOLDEN / name, tmp_path / "checkpoint")
    whole, model = convert_huggingface(folder).task, {"vit": "ViTModel", "deit": "DeiTModel"}[name]
    tensors = load_file(folder / WEIGHTS)
    encoder = {key.removeprefix(prefix): tensors[key] for key in tensors if prefix in key}
    assert len(encoder) == len(tensors) - 2
    save_file(encoder | {"pooler.dense.bias": np.zeros(8, np.float32)}, folder / WEIGHTS)
    change_json(folder / "config.json", architectures=[model])
    task, (note,) = convert_huggingface(folder)
    assert f"config.json: {model} has no classifier. That of the task is new" in note
    assert task.labels == ["LABEL_0", "LABEL_1"]
    (found, expected) = (one.backbone.encoder.get_weights() for one in (task, whole))
    for weight, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(weight, other)


MISTAKES = {
    "other head": (
        config(architectures=["ViTForMaskedImageModeling"]),
        "config.json: Supported `architectures` are ViTForImageClassification, DeiTForImageC.*, "
        r"ViTModel, DeiTModel. Received: architectures='ViTForMaskedImageModeling'\.$",
    ),
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
    change_json(path, do_center_crop=True, size={"shortest_edge": 10}, resample=1)
    resizing = convert_huggingface(folder).task.resizing
    assert resizing == {"resize_to": 10, "interpolation": "lanczos3"}
    change_json(path, resample=4)
    refused_in_one_line("`resample` must be the number of an inter", convert_huggingface, folder)
    change_json(path, resample=2, crop_size=7)
    refused_in_one_line("`crop_size` must be the size of the mo", convert_huggingface, folder)
    change_json(path, crop_size=8, image_std=[0.5, 0.5])
    refused_in_one_line("must have a number for each channel", convert_huggingface, folder)
    change_json(path, rescale_factor=1 / 127.5)
    refused_in_one_line("`rescale_factor` must be 1 / 255", convert_huggingface, folder)
