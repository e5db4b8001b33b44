"""RunSettings: layers, presets, run.yaml, mistakes."""

import re

import pytest
import yaml

from keras_attn.models import PRESETS
from keras_attn.recipes import merged
from keras_attn.training.run_settings import RunSettings, read_yaml
from tests.refusals import message_of, refused

pytestmark = pytest.mark.tensorflow
DATA = {"data": {"train": ["pairs.tsv"]}}
BASE = {"preset": "g2p_small"} | DATA


def test_layers_count_more_the_later_they_come():
    settings = RunSettings.resolve(
        BASE,
        {"training": {"seed": 5, "batch_tokens": 300}},
        {"training": {"seed": 7}, "decoding": {"beams": 2}},
    )
    assert (settings.training.seed, settings.training.batch_tokens) == (7, 300)
    recipe = PRESETS["g2p_small"].recipe()
    assert settings.training.learning_rate == recipe["training"]["learning_rate"]
    assert settings.decoding == recipe["decoding"] | {"beams": 2}
    assert settings.metrics == recipe["metrics"]
    assert settings.tokenizers == recipe["tokenizers"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves_and_is_left_as_it_was(name):
    before = yaml.safe_dump(PRESETS[name].recipe())
    settings = RunSettings.resolve({"preset": name} | DATA)
    settings.tokenizers.setdefault("source", {})["kind"] = "other"
    settings.metrics.append("other")
    assert yaml.safe_dump(PRESETS[name].recipe()) == before


@pytest.mark.parametrize("name", PRESETS)
def test_written_and_read_again_they_are_equal(name, tmp_path):
    layer = {"data": {"train": ["ä.tsv"], "hold_out": 3}, "training": {"epsilon": 1e-9}}
    settings = RunSettings.resolve({"preset": name} | DATA, layer)
    settings.write(tmp_path / "run.yaml")
    assert RunSettings.read(tmp_path / "run.yaml") == settings
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]
    read = RunSettings.read(tmp_path / "run.yaml", {"training": {"seed": 3}})
    assert read.training.seed == 3
    assert read.data == settings.data


def test_steps_take_the_place_of_the_default_epochs():
    init = {"init": "somewhere"} | DATA
    assert RunSettings.resolve(init, {"training": {"steps": 5}}).training.epochs is None
    assert RunSettings.resolve(init).training.epochs == 10
    both = RunSettings.resolve(init, {"training": {"steps": 5, "epochs": 3}}).training
    assert (both.steps, both.epochs) == (5, 3)


@pytest.mark.parametrize(
    ("preset", "layer", "epochs", "steps"),
    [
        ("g2p_small", {"steps": 500}, None, 500),
        ("g2p_small", {"steps": 500, "epochs": 3}, 3, 500),
        ("transformer_tiny", {"epochs": 3}, 3, None),
        ("transformer_tiny", {"epochs": None}, None, 5000),
    ],
)
def test_an_end_that_is_set_takes_the_place_of_the_recipes(preset, layer, epochs, steps):
    """Those of the recipes are 6 epochs and 5,000 updates."""
    given = {"preset": preset, "data": {"train": ["a"]}, "training": layer}
    training = RunSettings.resolve(given).training
    assert (training.epochs, training.steps) == (epochs, steps)


def test_the_first_metric_chooses_unless_another_is_named():
    assert RunSettings.resolve(BASE).training.metric == "per"
    assert RunSettings.resolve(BASE, {"metrics": ["wer"]}).training.metric == "wer"
    named = RunSettings.resolve(BASE, {"training": {"metric": "loss"}})
    assert named.training.metric == "loss"
    assert RunSettings.resolve(BASE, {"metrics": []}).training.metric == "loss"


def test_a_run_that_starts_from_a_run_takes_its_metrics(tmp_path):
    (tmp_path / "run.yaml").write_text("metrics: [wer]\n")
    layer = {"init": str(tmp_path)} | DATA
    assert RunSettings.resolve(layer).metrics == ["wer"]
    assert RunSettings.resolve(layer, {"metrics": ["bleu"]}).metrics == ["bleu"]
    (tmp_path / "run.yaml").unlink()
    assert RunSettings.resolve(layer).metrics == []


def test_text_to_text_goes_on_from_trained_weights_by_a_recipe_for_them(tmp_path):
    (tmp_path / "task.json").write_text('{"task": "seq2seq"}')
    training = RunSettings.resolve({"init": str(tmp_path)} | DATA).training
    assert (training.label_smoothing, training.learning_rate, training.epochs) == (0, 1e-4, 3)


def test_a_single_text_is_a_list_of_one():
    settings = RunSettings.resolve(
        {"preset": "g2p_small", "data": {"train": "cmudict", "test": "t.tsv"}}
    )
    assert (settings.data.train, settings.data.test) == (["cmudict"], ["t.tsv"])
    assert RunSettings.resolve(BASE, {"metrics": "wer"}).metrics == ["wer"]


def test_empty_sections_change_nothing():
    empty = {"training": None, "decoding": None, "model": None, "metrics": None, "data": None}
    assert RunSettings.resolve(BASE, empty) == RunSettings.resolve(BASE)
    # But a name may be taken back.
    settings = RunSettings.resolve(BASE, {"preset": None, "init": "somewhere"})
    assert (settings.preset, settings.init) == (None, "somewhere")


def test_merging_leaves_both_as_they_were():
    lower, upper = {"a": {"b": 1, "c": 2}}, {"a": {"c": 3}, "d": 4}
    assert merged(lower, upper) == {"a": {"b": 1, "c": 3}, "d": 4}
    assert (lower, upper) == ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}, "d": 4})


def test_another_kind_leaves_the_options_of_the_first_out():
    preset = {"preset": "transformer_tiny", "data": {"train": ["a.tsv"]}}
    layer = {"tokenizers": {"source": {"kind": "characters", "lowercase": True}}}
    found = RunSettings.resolve(preset, layer).tokenizers["source"]
    assert found == {"kind": "characters", "lowercase": True}
    same = {"tokenizers": {"source": {"kind": "sentencepiece", "vocabulary_size": 99}}}
    found = RunSettings.resolve(preset, same).tokenizers["source"]
    assert found["vocabulary_size"] == 99
    assert found["model_type"]
    lower, upper = {"a": {"name": "x", "b": 1}}, {"a": {"name": "y", "c": 2}}
    assert merged(lower, upper) == {"a": {"name": "y", "c": 2}}


def test_a_name_alone_gets_options():
    lower, upper = {"attention": "local"}, {"attention": {"sliding_window": 5}}
    assert merged(lower, upper) == {"attention": {"name": "local", "sliding_window": 5}}
    upper = {"attention": {"name": "lsh", "num_rounds": 2}}
    assert merged(lower, upper) == upper
    assert merged({"a": "local"}, {"a": {"b": 5}}) == {"a": {"b": 5}}
    lower, upper = {"attention": {"sliding_window": 5}}, {"attention": "local"}
    assert merged(lower, upper) == {"attention": {"sliding_window": 5, "name": "local"}}
    lower = {"attention": {"name": "linear", "feature_map": "elu"}}
    assert merged(lower, upper) == {"attention": {"name": "local"}}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"trainig": {}}, "Did you mean 'training'\\? Received: section='trainig'."),
        ({"training": {"sed": 3}}, "Did you mean `seed`\\? Received: sed=3."),
        ({"training": {"seed": "x"}}, "`seed` must be a whole number. Received: seed='x'."),
        ({"training": {"epochs": 0}}, "Received: epochs=0."),
        ({"training": 5}, "`training` must hold named settings. Received: training=5."),
        ({"model": ["a"]}, r"`model` must hold named settings. Received: model=\['a'\]."),
        ({"data": {"tran": "x"}}, "Did you mean 'train'\\? Received: data setting='tran'."),
        ({"data": {"train": []}}, "A run needs training data."),
        ({"data": {"train": 5}}, "`train` must be a text or a list of texts. Received: train=5."),
        ({"data": {"valid": [5]}}, r"Received: valid=\[5\]."),
        ({"data": {"hold_out": 0}}, "`hold_out` must be a positive integer. Received: hold_out=0."),
        ({"data": {"decode_limit": "many"}}, "Received: decode_limit='many'."),
        ({"data": {"max_source_length": -1}}, "Received: max_source_length=-1."),
        ({"data": {"stress": "yes"}}, "`stress` must be true or false. Received: stress='yes'."),
        ({"preset": "g2p_smal"}, "Did you mean 'g2p_small'\\? Received: preset='g2p_smal'."),
        ({"preset": None}, "needs a preset .* or a task .* Received: preset=None, init=None."),
        ({"init": "x"}, "is a run of that preset. Received: .* init='x', preset_of_init=None."),
        ({"preset": 3}, "The section `preset` must be text. Received: preset=3."),
        ({"metrics": 3}, "`metrics` must be a text or a list of texts. Received: metrics=3."),
    ],
)
def test_mistakes(layer, message):
    assert re.search(message, message_of(RunSettings.resolve, BASE, layer))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold sections of settings. Received: found=None."),
        (b"- a\n", r"must hold sections of settings. Received: found=\['a'\]."),
        (b"a: [\n", "is not valid YAML"),
        (b"a: \xff\n", "expected a UTF-8 file"),
        (b"a: {}\nb: {}\na: {}\n", "is not valid YAML: line 3 has the duplicate key 'a'"),
        (b"a:\n  b: 1\n  c: {d: 1}\n  b: 2\n", "line 4 has the duplicate key 'b'"),
    ],
)
def test_files_that_are_no_settings(tmp_path, content, message):
    (tmp_path / "run.yaml").write_bytes(content)
    assert re.search(message, message_of(read_yaml, tmp_path / "run.yaml"))
    missing = tmp_path / "other.yaml"
    refused(f"There is no such file of settings: {missing}", RunSettings.read, missing)


def test_a_folder_is_no_file_of_settings(tmp_path):
    refused(f"^{tmp_path}: expected a regular file.", read_yaml, tmp_path)


def test_equal_keys_of_different_mappings_and_merged_ones_are_right(tmp_path):
    text = "a: &a {x: 1, y: 2}\nb: {deep: &b {<<: *a, x: 3}}\nc: {<<: *b, y: 4}\n"
    (tmp_path / "run.yaml").write_text(text)
    assert read_yaml(tmp_path / "run.yaml") == yaml.safe_load(text)
    assert read_yaml(tmp_path / "run.yaml")["b"] == {"deep": {"x": 3, "y": 2}}
