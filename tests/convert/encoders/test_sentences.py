"""All modules of sentence-transformers, judged by what it computes."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_attn.checkpoints import WEIGHTS
from keras_attn.convert import convert_huggingface
from keras_attn.convert.files.json_files import read_list
from keras_attn.export import export_saved_model, verify
from keras_attn.models import PooledEncoder
from keras_attn.tasks import open_exported
from tests.convert.made import GOLDEN, change_json, converted, copy_of, loaded, without
from tests.harness import arrays_of, assert_same
from tests.refusals import refused, refused_in_one_line

pytestmark = pytest.mark.tensorflow

FOLDER = GOLDEN / "sentences"
EXPECTED = arrays_of(GOLDEN / "sentences_outputs.npz")
TEXTS = ["The cats sat on the mat.", "a dog", "ÜBER, a cat! Cats cats cat a dog sat on the cat"]


@pytest.fixture(scope="module")
def task():
    return converted(FOLDER)


def check(found, name):
    assert np.ptp(EXPECTED[name]) > 0.5
    np.testing.assert_allclose(found, EXPECTED[name], atol=1e-5)


def test_vectors_are_those_of_sentence_transformers(task, tmp_path):
    """Each text alone and all together, also saved and exported, with each prompt."""
    assert isinstance(task.backbone, PooledEncoder)
    assert (task.features, task.default_prompt) == (5, "document")
    check(task.predict(TEXTS), "plain")
    check(np.concatenate([task.predict([text]) for text in TEXTS]), "plain")
    assert np.abs(EXPECTED["plain"] - EXPECTED["query"]).max() > 0.1
    folder = export_saved_model(task, tmp_path / "exported")
    assert verify(folder).ok
    for one in (task, loaded(task, tmp_path), open_exported(folder)):
        check(one.predict(TEXTS, prompt="document"), "plain")
        check(one.predict(TEXTS, prompt="query"), "query")
        refused("`prompt` must be one of 'd.*Received: prompt='c'", one.predict, TEXTS, prompt="c")


def test_dense_layers_go_back(task, tmp_path):
    """With the modules and tensors of the checkpoint that was converted."""
    task.save_huggingface(tmp_path / "back")
    modules = read_list(tmp_path / "back" / "modules.json")
    before = read_list(FOLDER / "modules.json")
    for key in ("type", "path"):
        assert [one[key].rpartition(".")[2] for one in modules] == [
            one[key].rpartition(".")[2] for one in before
        ]
    dense = [one["path"] for one in modules if one["type"].endswith("Dense")]
    assert dense
    for path in dense:
        assert (tmp_path / "back" / path / "config.json").is_file()
        found, expected = (load_file(x / path / WEIGHTS) for x in (tmp_path / "back", FOLDER))
        assert_same(found, expected)
    check(converted(tmp_path / "back").predict(TEXTS, prompt="query"), "query")


def test_poolings_as_truth_values_are_in_a_fixed_order(tmp_path):
    folder = copy_of(FOLDER, tmp_path / "checkpoint")
    modes = ("lasttoken", "cls_token", "mean_sqrt_len_tokens")
    flags = {f"pooling_mode_{mode}": True for mode in modes}
    path = folder / "1_Pooling/config.json"
    change_json(path, **flags, pooling_mode=..., pooling_mode_max_tokens=False)
    without("linear")(folder / "2_Dense")
    message = r"2_Dense: the tensors do not fit the model; missing: linear.bias, linear.weight"
    refused_in_one_line(message, convert_huggingface, folder)
    (folder / "modules.json").unlink()
    task = convert_huggingface(folder).task
    assert task.pooling == "mean"


MISTAKES = {
    "module": ("modules.json", None, "the modules must be Transformer, Pooling, any number of De"),
    "mode": ("1_Pooling/config.json", {"pooling_mode": "median"}, "pooling mode of .*median"),
    "no prompt": ("1_Pooling/config.json", {"include_prompt": False}, "`include_prompt` must be T"),
    "size": ("2_Dense/config.json", {"out_features": 6}, "linear.bias .7,. instead of .6,."),
    "units": (
        "2_Dense/config.json",
        {"out_features": "7"},
        "`out_features` must be a positive int",
    ),
    "key": ("2_Dense/config.json", {"colour": 1}, "`colour` is not supported"),
    "activation": (
        "2_Dense/config.json",
        {"activation_function": "x.Sin"},
        "activation_function o",
    ),
    "prompt": (
        "config_sentence_transformers.json",
        {"default_prompt_name": "passage"},
        "`default_prompt_name` must be the name of a prompt",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_take_one_line(name, tmp_path):
    file, values, message = MISTAKES[name]
    folder = copy_of(FOLDER, tmp_path / "checkpoint")
    if values is None:
        text = (folder / file).read_text().replace("normalize.Normalize", "normalize.Scale")
        (folder / file).write_text(text)
    else:
        change_json(folder / file, **values)
    refused_in_one_line(message, convert_huggingface, folder)
