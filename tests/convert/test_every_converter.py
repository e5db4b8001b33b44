"""Every converter uses all of a checkpoint and refuses what it does not know."""

import numpy as np
import pytest

from keras_attn.convert import convert_huggingface
from keras_attn.convert.huggingface import CONVERTERS
from keras_attn.tasks import Task
from keras_attn.validation import UserError
from tests.convert.checkpoints import CHECKPOINTS
from tests.convert.made import change_json, change_tensors, copy_of

pytestmark = pytest.mark.tensorflow


@pytest.fixture(params=CHECKPOINTS)
def folder(request, tmp_path):
    return copy_of(CHECKPOINTS[request.param], tmp_path / request.param)


def test_every_converter_has_a_checkpoint():
    assert set(CHECKPOINTS) == set(CONVERTERS)


def test_a_converted_task_is_saved_and_loaded(folder, tmp_path):
    task = convert_huggingface(folder).task
    task.save(tmp_path / "task")
    loaded = Task.load(tmp_path / "task")
    assert type(loaded) is type(task)
    for one, other in zip(loaded.backbone.weights, task.backbone.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_an_unknown_key_is_refused(folder):
    change_json(folder / "config.json", twice_as_deep=True)
    with pytest.raises(UserError, match="config.json: `twice_as_deep` is not supported"):
        convert_huggingface(folder)


def test_an_unknown_tensor_is_refused(folder):
    more = {"somewhere.else": np.ones(2, "float32")}
    change_tensors(folder, lambda tensors: tensors | more)
    with pytest.raises(UserError, match="the tensors do not fit the model; .*somewhere.else"):
        convert_huggingface(folder)
