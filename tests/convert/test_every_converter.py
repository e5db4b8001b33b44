"""Every converter uses all of a checkpoint and refuses what it does not know."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.convert import convert_huggingface, from_huggingface
from keras_attn.convert.huggingface import CONVERTERS, ENCODERS
from keras_attn.export import export_saved_model, verify
from keras_attn.tasks import open_exported
from tests.convert.checkpoints import CHECKPOINTS
from tests.convert.made import (
    GOLDEN,
    WEIGHTS,
    change_tensors,
    config,
    copy_of,
    loaded,
    mistakes,
    tensors,
    truncate,
)

pytestmark = pytest.mark.tensorflow

GENERATING = ("gpt2", "t5", "t5_v1_1", "marian", "marian_separate")


@pytest.fixture(params=CHECKPOINTS)
def folder(request, tmp_path):
    return copy_of(CHECKPOINTS[request.param], tmp_path / "checkpoint")


def assert_same_weights(one, other):
    for found, expected in zip(one.backbone.weights, other.backbone.weights, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_every_converter_has_a_checkpoint():
    # test_encoders.py and test_vit.py have the others.
    others = {"deit", "vit", *ENCODERS} - {"bert", "longformer"}
    assert set(CHECKPOINTS) == set(CONVERTERS) - others


def test_a_converted_task_is_saved_and_loaded(folder, tmp_path):
    task = convert_huggingface(folder).task
    again = loaded(task, tmp_path)
    assert type(again) is type(task)
    assert_same_weights(again, task)


def test_half_precision_is_read_exactly(folder):
    halves = {name: t.astype("float16") for name, t in load_file(folder / WEIGHTS).items()}
    change_tensors(folder, lambda _: halves)
    found = from_huggingface(folder)
    change_tensors(folder, lambda _: {name: t.astype("float32") for name, t in halves.items()})
    assert_same_weights(found, from_huggingface(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATING)
def test_exported_it_gives_the_same_texts(name, tmp_path):
    task = from_huggingface(GOLDEN / name)
    texts = ["The quick <extra_id_0>", "", "ist naß", ">>fra<< the dog 中国"]
    folder = export_saved_model(task, tmp_path / "exported", n_best=min(2, task.decoding.beams))
    assert verify(folder).ok
    assert open_exported(folder).predict(texts) == task.predict(texts)


MISTAKES = {
    "unknown key": (config(colour=3), "config.json: `colour` is not supported. Rec.*: colour=3"),
    "own code": (config(auto_map={"AutoModel": "x.Y"}), "`auto_map` must be None"),
    "unknown tensor": (
        tensors(lambda tensors: tensors | {"somewhere.else": np.ones(2, "float32")}),
        "the tensors do not fit the model; .*somewhere.else",
    ),
    "cut weights": (lambda f: truncate(f / WEIGHTS), "model.safetensors is damaged or not a safe"),
}

test_mistakes_take_one_line = mistakes(MISTAKES)
