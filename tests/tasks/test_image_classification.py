"""Labels of images: probabilities of the model itself, saved, exported, told what is wrong."""

import io
import pathlib

import numpy as np
import PIL.Image
import pytest
import tensorflow as tf

from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.export.golden import read_golden
from keras_attn.models import PatchEncoder, SequenceClassifier, TransformerEncoder
from keras_attn.tasks import (
    ExportedImageClassification,
    ImageClassificationTask,
    open_task,
    read_inputs,
)
from keras_attn.validation import UserError
from tests.data.test_images import WHOLE, of, png
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import assert_alike, reloaded

pytestmark = pytest.mark.tensorflow

LABELS = ["very bad", "fair", "good"]
RNG = np.random.default_rng(5)
BRIGHT = np.linspace(0, 1, 6)[:, None, None, None]
ARRAYS = (RNG.integers(0, 256, (6, 4, 6, 3)) * BRIGHT).astype("uint8")
IMAGES = [png(of(array)) for array in ARRAYS]


def make_task(labels=LABELS, columns=3, **model):
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11} | model
    encoder = PatchEncoder(**({"image_size": (4, 6), "patch_size": 2} | sizes))
    backbone = spread_weights(SequenceClassifier(encoder, columns, "first"), 5)
    return ImageClassificationTask(backbone, labels)


@pytest.fixture(scope="module")
def task():
    return make_task()


def logits_of(task, array):
    pixels = array.astype("float32") / 127.5 - 1
    return np.asarray(task.backbone({"images": pixels[None]}))[0]


def test_probabilities_are_those_of_each_image_alone(task):
    logits = np.stack([logits_of(task, array) for array in ARRAYS])
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(task.probabilities(IMAGES), expected, rtol=1e-4)
    chosen = [LABELS[place] for place in logits.argmax(axis=1)]
    assert len(set(chosen)) > 1
    assert task.predict(IMAGES) == chosen
    for hypotheses, row in zip(task.predict_n_best(IMAGES, 2), logits, strict=True):
        assert [h.text for h in hypotheses] == [LABELS[place] for place in np.argsort(-row)[:2]]
    counts = []
    many = task.predict_n_best(IMAGES * 20, 1, progress=counts.append)
    assert counts == [64, 56]
    assert [best[0].text for best in many] == chosen * 20


def test_images_of_another_kind_are_brought_to_the_models(task):
    grey = of(ARRAYS[0]).convert("L").resize((12, 8), PIL.Image.Resampling.BICUBIC)
    small = grey.resize((6, 4), PIL.Image.Resampling.BILINEAR)
    expected = logits_of(task, np.stack([np.asarray(small)] * 3, -1))
    found = np.log(task.probabilities([png(grey)])[0])
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=0.05)


@pytest.mark.slow
def test_saved_and_exported(task, tmp_path):
    loaded = reloaded(task, tmp_path / "task")
    np.testing.assert_array_equal(loaded.probabilities(IMAGES), task.probabilities(IMAGES))
    names = [str(tmp_path / f"{number}.png") for number in range(2)]
    for name, image in zip(names, IMAGES, strict=False):
        pathlib.Path(name).write_bytes(image)
    folder = export_saved_model(
        loaded, tmp_path / "exported", n_best=2, examples=read_inputs(loaded.kind, names)
    )
    (inputs,) = (i for name, i, _ in read_golden(folder).examples if name == "serving_default")
    assert inputs["image_bytes"].tolist() == IMAGES[:2]
    exported = open_task(tmp_path / "exported")
    assert type(exported) is ExportedImageClassification
    assert exported.kind == task.kind
    assert exported.predict(IMAGES) == task.predict(IMAGES)
    assert_alike(exported.predict_n_best(IMAGES, 2), task.predict_n_best(IMAGES, 2), rtol=1e-4)
    with CppSavedModel(folder) as model:
        probabilities = task.probabilities(IMAGES)
        found = model.run("pixels", {"pixels": ARRAYS})["probabilities"]
        np.testing.assert_allclose(found, probabilities, rtol=1e-4)
        found = model.run("serving_default", {"image_bytes": IMAGES})
        np.testing.assert_allclose(found["probability"], probabilities.max(axis=1), rtol=1e-4)
        assert [label.decode() for label in found["label"]] == task.predict(IMAGES)
        with pytest.raises(UserError, match="Invalid PNG"):
            model.run("serving_default", {"image_bytes": [IMAGES[0], WHOLE[:-30]]})


def test_words_are_texts_themselves_for_other_tasks():
    assert read_inputs("classification", ["a.png"]) == ["a.png"]


def test_examples_of_several_kinds(task):
    sizes = [PIL.Image.open(io.BytesIO(image)) for image in task.example_texts()]
    assert [(image.size, image.mode) for image in sizes] == [
        ((6, 4), "RGB"),
        ((12, 7), "RGBA"),
        ((7, 8), "I;16"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["a"], "columns": 1}, "At least two labels are needed. Received: labels=.'a'."),
        ({"labels": ["a", "b"]}, "must equal the number of logits. Received: labels=2, logits=3"),
        ({"channels": 2}, "PNG images have 1 or 3 channels. Received: channels=2"),
    ],
)
def test_mistakes_in_making_it(arguments, message):
    refused(message, make_task, **arguments)


def test_a_model_of_texts_is_none():
    encoder = TransformerEncoder(5, num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=11)
    with pytest.raises(UserError, match=r"must take images. Received: inputs=\['token_ids'\]"):
        ImageClassificationTask(SequenceClassifier(encoder, 3), LABELS)


def test_mistakes_in_using_it(task):
    with pytest.raises(UserError, match=r"images\[1\]: the PNG image is damaged or truncated"):
        task.predict([IMAGES[0], IMAGES[1][:-20]])
    refused("must not exceed the number of labels. .*n_best=4, lab", task.predict_n_best, IMAGES, 4)
    refused("has no beam search. Received: beams=2", task.predict_n_best, IMAGES, 1, beams=2)
    assert task.predict([]) == []


def test_grey_pixels_are_named_by_the_signature():
    task = make_task(channels=1, image_size=8, patch_size=4)
    spec = task.serving_functions(1)["pixels"].inputs["pixels"]
    assert (spec.shape.as_list(), spec.dtype) == ([None, 8, 8, 1], tf.uint8)
