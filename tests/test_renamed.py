"""Names of the version before load and warn."""

import zipfile

import keras
import pytest
import yaml

import keras_attn
from keras_attn import generation, layers, models, tasks
from keras_attn.models import PRESETS
from keras_attn.models.presets import find_recipe
from keras_attn.renamed import renamed_arguments
from keras_attn.task_names import RENAMED_TASKS, TASK_NAMES
from tests.harness import assert_same, assert_saved, numbers
from tests.models.every_family import EVERY

OLD = {
    (tasks, "LabellingTask"): tasks.BaseClassificationTask,
    (models, "Etc"): models.ETC,
    (models, "Gnmt"): models.GNMT,
    (models, "Gpt2"): models.GPT2,
    (layers, "SegmentedAttention"): layers.SegmentRecurrence,
    (generation, "Hypotheses"): generation.GenerationResult,
}


@pytest.mark.parametrize(("module", "name"), OLD)
def test_an_old_name_stands_for_the_new_one_and_warns(module, name):
    with pytest.warns(DeprecationWarning, match=f"{name} is now .*{OLD[module, name].__name__}"):
        assert getattr(module, name) is OLD[module, name]


def test_an_old_argument_works_and_warns():
    @renamed_arguments(free_end="forced_end_is_free")
    def function(one, forced_end_is_free=False):
        return one, forced_end_is_free

    assert function(1, forced_end_is_free=True) == (1, True)
    with pytest.warns(DeprecationWarning, match="`free_end` is now `forced_end_is_free`"):
        assert function(1, free_end=True) == (1, True)


@pytest.mark.tensorflow
def test_decoding_settings_of_the_version_before():
    from keras_attn.tasks import DecodingSettings

    expected = DecodingSettings(beams=2, forced_end_is_free=True)
    assert DecodingSettings.from_dict({"beams": 2, "free_end": True}) == expected
    with pytest.warns(DeprecationWarning, match="`free_end` is now"):
        assert DecodingSettings(beams=2).replace(free_end=True) == expected
    with pytest.warns(DeprecationWarning, match="`free_end` is now"):
        assert DecodingSettings(beams=2, free_end=True) == expected
    with pytest.warns(DeprecationWarning, match="`free_end` is now"):
        assert expected.free_end is True


@pytest.mark.tensorflow
def test_decoded_images_is_images_to_array():
    from keras_attn import data

    with pytest.warns(DeprecationWarning, match=r"decoded_images is now .*images_to_array"):
        assert data.decoded_images is data.images_to_array


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'Gpt3'"):
        _ = models.Gpt3


def test_weights_inside_a_file_of_the_version_before_are_found(tmp_path):
    # Keras finds the weights of a layer inside a model by the name of its class.
    old = keras.saving.get_registered_object("keras_attn>SegmentedAttention")
    assert (old.__name__, old.__base__) == ("SegmentedAttention", layers.SegmentRecurrence)
    inputs = keras.Input((6, 8))
    attention = old(layers.RecurrentMemoryAttention(2, 4, memory_length=3), 3)
    model = keras.Model(inputs, attention(inputs, inputs))
    assert_saved(model, numbers(1, 2, 6, 8), tmp_path)
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        assert b'"registered_name": "keras_attn>SegmentedAttention"' in file.read("config.json")


@pytest.mark.parametrize(
    ("name", "new", "old", "module"),
    [
        ("Etc", "ETC", "Etc", "keras_attn.models.etc"),
        ("GPT-2", "GPT2", "Gpt2", "keras_attn.models.gpt2"),
    ],
)
def test_files_of_the_version_before_load(name, new, old, module):
    make, inputs = next(value for key, value in EVERY.items() if key in (name, new, old))
    model = make()
    described = keras.saving.serialize_keras_object(model)
    assert described["class_name"] == new
    described |= {"class_name": old, "registered_name": f"keras_attn>{old}", "module": module}
    loaded = keras.saving.deserialize_keras_object(described)
    loaded.set_weights(model.get_weights())
    assert_same(loaded(inputs), model(inputs))


@pytest.mark.tensorflow
def test_tasks_have_one_name_everywhere():
    from keras_attn.tasks import Task
    from keras_attn.tasks.exported.base import Exported
    from keras_attn.training.task_runs import TASK_RUNS

    assert sorted(TASK_RUNS) == sorted(TASK_NAMES)
    assert {*Task.classes} == {*Exported.classes} == {*TASK_NAMES} - {"span_corruption"}
    for name, task in Task.classes.items():
        assert task.__name__.lower() == name.replace("_", "") + "task"
        assert task.__module__ == f"keras_attn.tasks.{name}"
        assert type(TASK_RUNS[name]).__module__ == f"keras_attn.training.task_runs.{name}"
    assert {*RENAMED_TASKS.values()} < {*TASK_NAMES}
    assert {name for preset in PRESETS.values() for name in preset.tasks} == {*TASK_NAMES}


@pytest.mark.tensorflow
def test_a_task_folder_of_the_version_before(tmp_path):
    from tests.tasks.test_masked_lm import make_task

    task = make_task()
    task.save(tmp_path / "task")
    described = tmp_path / "task" / "task.json"
    described.write_text(described.read_text().replace('"masked_lm"', '"mlm"'))
    loaded = keras_attn.load(tmp_path / "task")
    assert loaded.predict(["a [MASK]"]) == task.predict(["a [MASK]"])


@pytest.mark.tensorflow
def test_settings_and_recipes_of_the_version_before(tmp_path):
    from keras_attn.training.run_settings import RunSettings

    layer = {"preset": "bert_tiny", "data": {"train": "a.txt"}}
    with pytest.warns(DeprecationWarning, match="The task `mlm` is now `masked_lm`"):
        settings = RunSettings.resolve(layer | {"task": "mlm"})
    assert settings == RunSettings.resolve(layer | {"task": "masked_lm"})
    settings.write(tmp_path / "run.yaml")
    old = (tmp_path / "run.yaml").read_text().replace("masked_lm", "mlm")
    (tmp_path / "run.yaml").write_text(old)
    assert RunSettings.read(tmp_path / "run.yaml") == settings
    with pytest.warns(DeprecationWarning, match="The task `tag` is now"):
        assert find_recipe("bert_tiny.tag") == find_recipe("bert_tiny.token_classification")


@pytest.mark.tensorflow
def test_a_run_of_the_version_before_reads_its_files_as_it_did(tmp_path):
    from keras_attn.training.run_settings import RunSettings

    settings = RunSettings.resolve({"preset": "encoder_tiny", "data": {"train": "a.tsv"}})
    assert (settings.data.stratify, settings.data.long_texts) == (True, None)
    settings.write(tmp_path / "run.yaml")
    assert RunSettings.read(tmp_path / "run.yaml") == settings
    described = yaml.safe_load((tmp_path / "run.yaml").read_text())
    for name in ("columns", "encoding", "stratify", "long_texts", "max_dropped"):
        del described["data"][name]
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(described))
    data = RunSettings.read(tmp_path / "run.yaml").data
    assert (data.stratify, data.long_texts, data.max_dropped) == (False, "drop", 1.0)


@pytest.mark.tensorflow
def test_a_run_of_the_version_before_is_measured_as_what_it_was(tmp_path):
    from keras_attn.cli.evaluate import _settings_of_run
    from keras_attn.training.measuring import run_of

    (tmp_path / "run.yaml").write_text("task: mlm\ntraining:\n  parts: 2\n")
    recorded = _settings_of_run(str(tmp_path))
    training = {"cpu_shards": 2}
    assert recorded == {"task": "masked_lm", "training": training, "by_amount": {}}
    assert run_of(None, recorded).name == "masked_lm"
