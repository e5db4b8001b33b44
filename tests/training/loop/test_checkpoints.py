import json
import os

import keras
import numpy as np
import pytest

from keras_attn.training import Checkpoints, assign_model_arrays, average_checkpoints
from keras_attn.training.loop.checkpoints import model_arrays, read_checkpoint, write_checkpoint
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.stand_in import backbone

pytestmark = pytest.mark.tensorflow


def arrays(value=0.0):
    return {"model/00000/a": np.full((2, 3), value, "float32"), "optimizer/00000/n": np.array(7)}


def written(folder, steps, keep=2, milestones=()):
    """Checkpoints of these steps, and the lines that were said."""
    lines = []
    checkpoints = Checkpoints(folder, keep, lines.append)
    for step in steps:
        state = {"step": step, "sums": [0.1 + 0.2]}
        checkpoints.write(step, arrays(step), state, milestone=step in milestones)
    return checkpoints, lines


def test_read_returns_what_was_written(tmp_path):
    values = {
        "b": np.array([[1.5, -2.25]], "float32"),
        "s": np.array(2**40 + 1, "int64"),
        "h": np.array([65504.0], "float16"),
        "e": np.zeros((0, 3), "float64"),
    }
    write_checkpoint(tmp_path / "c", values, {"x": 0.1 + 0.2, "none": None})
    found, state = read_checkpoint(tmp_path / "c")
    assert state == {"x": 0.1 + 0.2, "none": None}
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(found[name], value)


def test_model_arrays_hold_every_variable_even_of_equal_paths():
    inputs = keras.Input((5,))
    first, second = (keras.layers.Dense(5, name="same") for _ in range(2))
    hidden = keras.Sequential([keras.Input((5,)), first, keras.layers.Dropout(0.5)])(inputs)
    model = keras.Model(inputs, keras.Sequential([keras.Input((5,)), second])(hidden))
    saved = model_arrays(model)
    assert len(saved) == len(model.variables) == 5  # two kernels, two biases, one generator
    assert sum("seed_generator_state" in name for name in saved) == 1
    model(np.ones((2, 5)), training=True)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    changed = model_arrays(model)
    assert all((changed[name] != saved[name]).any() for name in saved)
    assign_model_arrays(model, saved)
    for name, array in model_arrays(model).items():
        np.testing.assert_array_equal(array, saved[name])


def test_arrays_of_another_model_are_refused():
    model = backbone()
    saved = model_arrays(model)
    name = next(iter(saved))
    with pytest.raises(UserError, match=r"\(17, 11\)\. Received: .*float32 \(3, 11\)"):
        assign_model_arrays(model, saved | {name: saved[name][:3]})
    with pytest.raises(UserError, match=r"3 variables\. Received: 2 arrays"):
        assign_model_arrays(model, {key: value for key, value in saved.items() if key != name})


def test_newest_two_and_the_last_milestones_are_kept(tmp_path):
    checkpoints, _ = written(tmp_path, range(1, 10), keep=3, milestones=(2, 4, 5, 7))
    assert [path.name for path in checkpoints.folders()] == [
        f"step-{step:08d}" for step in (4, 5, 7, 8, 9)
    ]
    assert [path.name[-1] for path in checkpoints.milestones()] == ["4", "5", "7"]
    folder, found, state = checkpoints.latest()
    assert (folder.name, state["step"], found["model/00000/a"][0, 0]) == ("step-00000009", 9, 9)


def flip(content):
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGES = {
    "array changed": ("state.safetensors", flip),
    "array cut": ("state.safetensors", lambda content: content[:10]),
    "array lost": ("state.safetensors", None),
    "state changed": ("state.json", lambda text: text.replace(b'"step": 3', b'"step": 4')),
    "state cut": ("state.json", lambda text: text[:40]),
    "state lost": ("state.json", None),
    "state nested": ("state.json", lambda _: b'{"state": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "state long": ("state.json", lambda _: b'{"state": ' + b"9" * 5_000 + b"}"),
    "state a list": ("state.json", lambda _: b"[]"),
    "state a pipe": ("state.json", "pipe"),
}


def damage(folder, what):
    name, change = DAMAGES[what]
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if change == "pipe":
        os.mkfifo(folder / name)
    elif change:
        (folder / name).write_bytes(change(content))


@pytest.mark.parametrize("what", DAMAGES)
def test_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, what):
    checkpoints, lines = written(tmp_path, [1, 2, 3], milestones=(1, 2, 3))
    damage(tmp_path / "step-00000003", what)
    folder, found, state = checkpoints.latest()
    assert (folder.name, state["step"], found["model/00000/a"][1, 2]) == ("step-00000002", 2, 2)
    (line,) = lines
    assert "step-00000003 is damaged" in line
    assert line.endswith("Falling back to the checkpoint before.")
    assert "\n" not in line
    # It is out of the way for the rest of the run.
    assert [path.name[-1] for path in checkpoints.folders()] == ["2"]
    assert (tmp_path / "damaged-step-00000003").is_dir()


def test_all_damaged_is_an_error_and_loses_nothing(tmp_path):
    checkpoints, _ = written(tmp_path, [1, 2])
    for step in (1, 2):
        damage(tmp_path / f"step-0000000{step}", "array changed")
    for _ in range(2):
        refused(f"No sound checkpoint is left in {tmp_path}", checkpoints.latest)


def test_no_checkpoint(tmp_path):
    assert Checkpoints(tmp_path / "new").latest() is None


@pytest.mark.parametrize("new_format", [2, None])
def test_unknown_format_is_told(tmp_path, new_format):
    write_checkpoint(tmp_path / "c", arrays(), {})
    path = tmp_path / "c" / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": new_format}))
    refused(rf"must have format 1\. Received: format={new_format}", read_checkpoint, tmp_path / "c")


def test_unfinished_write_is_removed_at_the_next_start(tmp_path):
    written(tmp_path, [1])
    (tmp_path / ".writing-step-00000002").mkdir()
    (tmp_path / ".writing-step-00000002" / "state.safetensors").write_bytes(b"half")
    checkpoints = Checkpoints(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    assert checkpoints.latest()[2]["step"] == 1


def test_average_is_rounded_once(tmp_path):
    # Three values whose mean needs more than float32: adding them up in float32 gives 0.
    values = [np.float32(2.0**25), np.float32(3.0), np.float32(-(2.0**25))]
    folders = []
    for number, value in enumerate(values):
        folder = tmp_path / str(number)
        content = {
            "model/00000/w": np.full((5,), value, "float32"),
            "model/00001/seed": np.array([9, number]),
            "optimizer/00000/m": np.ones(3, "float32"),
        }
        write_checkpoint(folder, content, {})
        folders.append(folder)
    assert (values[0] + values[1]) + values[2] != 3.0
    average = average_checkpoints(folders)
    assert average.keys() == {"model/00000/w", "model/00001/seed"}
    np.testing.assert_array_equal(average["model/00000/w"], np.ones(5, "float32"))
    assert average["model/00000/w"].dtype == np.float32
    np.testing.assert_array_equal(average["model/00001/seed"], [9, 2])


def test_average_does_not_mind_what_another_process_called_the_variables(tmp_path):
    write_checkpoint(tmp_path / "a", {"model/00000/model/w": np.full(3, 1.0)}, {})
    write_checkpoint(tmp_path / "b", {"model/00000/model_1/w": np.full(3, 4.0)}, {})
    average = average_checkpoints([tmp_path / "a", tmp_path / "b"])
    np.testing.assert_array_equal(average["model/00000/model_1/w"], np.full(3, 2.5))


def test_average_of_nothing_or_of_different_models(tmp_path):
    refused(r"folders=\[\]", average_checkpoints, [])
    write_checkpoint(tmp_path / "a", {"model/00000/w": np.zeros(3)}, {})
    write_checkpoint(tmp_path / "b", {"model/00000/w": np.zeros(5)}, {})
    with pytest.raises(UserError, match=r"b is of another model than .*a\."):
        average_checkpoints([tmp_path / "a", tmp_path / "b"])
