"""Tasks made, trained, measured and exported by a few calls; data in the forms that users have."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import yaml

import keras_attn
from keras_attn.data import PairExamples
from keras_attn.models import Bert, get_preset
from keras_attn.tasks import CausalLMTask, ClassificationTask, Seq2SeqTask, Task
from keras_attn.training.given_data import Parts, written_data
from keras_attn.validation import UserError
from tests.refusals import refused

PACKAGE = pathlib.Path(keras_attn.__file__).parent
PAIRS = [(f"{a}{b}", f"{b.upper()} {a.upper()}") for a in "abcdefgh" for b in "abcdefgh"]
SMALL = {"model": {"hidden_dim": 32, "num_layers": 1, "intermediate_dim": 32}}
PARTS = Parts(("text", "label"))
FIT = {"epochs": 2, "batch_tokens": 256, "warmup_steps": 1, "learning_rate": 0.01}


class Table(dict):
    """Has columns as a pandas DataFrame and a `datasets.Dataset` have."""

    @property
    def column_names(self):
        return list(self)


def dataset(*columns):
    return tf.data.Dataset.from_tensor_slices(columns if len(columns) > 1 else columns[0])


NAMED = dataset({"stars": [1, 2], "review": ["a", "c"]})


@pytest.mark.parametrize(
    ("data", "columns", "expected"),
    [
        ([("a", "b"), ("c", "d")], None, [("a", "b"), ("c", "d")]),
        ((["a", "c"], ["b", "d"]), None, [("a", "b"), ("c", "d")]),
        ((np.array(["a", "c"]), np.array([0, 1])), None, [("a", "0"), ("c", "1")]),
        (["a", "c"], None, [("a",), ("c",)]),
        ({"x": ["a", "c"], "y": [1, 2], "z": [3, 4]}, ("x", "z"), [("a", "3"), ("c", "4")]),
        ({"x": ["a"], "y": [1]}, {"label": "x", "text": "y"}, [("1", "a")]),
        ({"label": ["a"], "id": [7], "text": ["b"]}, None, [("b", "a")]),
        ({"first": ["a"], "second": ["b"]}, None, [("a", "b")]),
        ([{"label": "a", "text": "b"}], None, [("b", "a")]),
        (Table(x=["a", "c"], y=[1, 2]), "x", [("a",), ("c",)]),
        ([("a\tb\nc", "d")], None, [("a\tb\nc", "d")]),
        ([(b"caf\xc3\xa9", 1)], None, [("café", "1")]),
        (dataset(["a", "c"], [1, 2]), None, [("a", "1"), ("c", "2")]),
        (dataset(["a", "b", "c"], [1, 2, 3]).batch(2), None, [("a", "1"), ("b", "2"), ("c", "3")]),
        (dataset(["a", "c"]), None, [("a",), ("c",)]),
        (NAMED, None, [("a", "1"), ("c", "2")]),
        (NAMED.batch(2), ("review", "stars"), [("a", "1"), ("c", "2")]),
    ],
)
def test_forms_of_data(data, columns, expected, tmp_path):
    parts = PARTS if len(expected[0]) == 2 else Parts(("text",))
    (path,) = written_data(data, tmp_path, "train", parts, columns)
    rows = map(json.loads, pathlib.Path(path).read_text("utf-8").splitlines())
    assert [tuple(row.values()) for row in rows] == expected


def test_lists_of_tags_are_joined_and_lists_of_labels_are_not(tmp_path):
    row = (["Anna", "sings"], ["B-PER", "O"])
    for part, expected in (("tags", "B-PER O"), ("label", ["B-PER", "O"])):
        (path,) = written_data([row], tmp_path, part, Parts(("text", part)))
        found = json.loads(pathlib.Path(path).read_text("utf-8"))
        assert found == {"text": "Anna sings", part: expected}


def test_files_stay_files(tmp_path):
    files = [pathlib.Path("a.txt"), pathlib.Path("b.txt")]
    assert written_data(files, tmp_path, "train", PARTS) == ["a.txt", "b.txt"]
    assert written_data("cmudict", tmp_path, "train", PARTS) == ["cmudict"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "columns", "message"),
    [
        ([], None, "must have at least one example"),
        ([("a", "b"), ("c",)], None, "must have the parts text, label.* example=1, parts=1"),
        ([("a", "b", "c")], None, "must have the parts text, label.* example=0, parts=3"),
        ((["a", "c"], ["b"]), None, "as many targets as sources. .*sources=2, targets=1"),
        ({"x": ["a"], "y": ["b"], "z": ["c"]}, None, "which of the columns 'x', 'y', 'z' is the"),
        ({"x": ["a"]}, ("x", "y"), "`columns` must name the columns to read.* table=.'x'"),
        ({"x": ["a"]}, "y", "`columns` must name one for each of text, label. .*columns=.'y'"),
        ([("a", "b")], ("x", "y"), "`columns` can be given for a table only"),
        ([{"text": "a", "label": 1}, {"text": "b"}], None, "the label of example 1 is missing"),
        (3, None, "Data must be a path, .* Received: int"),
        (tf.constant(["a"]), None, "Data must be a path, .* Received: EagerTensor"),
        (tf.data.Dataset.range(3), None, "must have the parts text, label.* parts=1"),
        ([(["Anna", 3], "x")], None, "the text of example 0 must be text or a number.*: list"),
        ([(b"\xff", 1)], None, "the text of example 0 is not UTF-8"),
        ([("\ud800", 1)], None, "example 0 has a character that is half of a surrogate pair"),
    ],
)
def test_data_of_other_forms(data, columns, message, tmp_path):
    refused(message, written_data, data, tmp_path, "train", PARTS, columns)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "run"
    task = Task.from_preset("g2p_small", PAIRS, **SMALL)
    before = [np.array(weight) for weight in task.backbone.weights]
    name = task.preset
    result = task.fit(PAIRS, test=PAIRS[:9], out=out, metrics=["per"], **FIT)
    return task, before, name, result


def test_a_task_is_trained_in_place_and_in_its_folder(fitted):
    task, before, name, result = fitted
    assert isinstance(task, Seq2SeqTask)
    assert (name, task.preset) == ("g2p_small", None)
    assert any(np.any(np.array(w) != b) for w, b in zip(task.backbone.weights, before, strict=True))
    assert [row["epoch"] for row in result.history] == [1, 2]
    assert result.test["items"] == 9
    loaded = keras_attn.load(result.folder)
    assert loaded.predict(["ab", "hg"]) == task.predict(["ab", "hg"]) == task.generate(["ab", "hg"])
    assert "task: seq2seq" in (result.folder / "run.yaml").read_text("utf-8")


@pytest.mark.slow
def test_it_is_measured_and_exported(fitted, tmp_path):
    task = fitted[0]
    measured = task.evaluate((["ab", "cd"], ["B A", "D C"]), metrics="per")
    assert set(measured) == {"per", "items"}
    version = task.export(tmp_path / "exported")
    exported = keras_attn.load(version)
    assert exported.predict(["ab"]) == exported.generate(["ab"]) == task.predict(["ab"])
    assert exported.evaluate((["ab", "cd"], ["B A", "D C"]), metrics="per") == measured


def test_it_goes_on(fitted):
    task, *_, result = fitted
    more = task.fit(PAIRS, out=result.folder, resume=True, epochs=3)
    assert [row["epoch"] for row in more.history] == [1, 2, 3]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "must be empty, or the run in it resumed"),
        ({"resume": True, "epochs": 5}, "data that it began with; these are different"),
    ],
)
def test_a_refused_fit_leaves_a_run_as_it_was(fitted, options, message):
    task, *_, result = fitted
    before = contents(result.folder)
    refused(message, task.fit, PAIRS[:20], out=result.folder, **options)
    assert contents(result.folder) == before


def test_files_of_others_are_left_alone(fitted, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.tsv").write_text("precious")
    refused("must be empty, .* which holds data", fitted[0].fit, PAIRS, out=tmp_path)
    assert [*contents(tmp_path).values()] == [b"precious"]
    assert not (tmp_path / "start").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_wrong_settings_leave_no_folder(fitted, exists, tmp_path):
    out = tmp_path / "run"
    if exists:
        out.mkdir()
    refused("steps=-3", fitted[0].fit, PAIRS, out=out, steps=-3)
    assert out.exists() == exists
    assert not exists or not [*out.iterdir()]


def test_a_folder_that_cannot_be_made_is_the_error(fitted, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        refused("must exist. Received", fitted[0].fit, PAIRS, out=out)
    assert [*contents(tmp_path).values()] == [b"mine"]


def test_callbacks_are_called(fitted):
    class Seen(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.calls = []

        def on_epoch_end(self, epoch, logs=None):
            self.calls.append(epoch)

    seen = Seen()
    fitted[0].fit(PAIRS, callbacks=[seen], **FIT | {"epochs": 2})
    assert len(seen.calls) == 2


def test_a_task_that_was_never_trained_is_trained_by_the_recipe_of_its_preset(tmp_path):
    pairs = [(f"{word} film", label) for word, label in zip("abcd", "pnpn", strict=True)] * 9
    task = Task.from_preset("encoder_tiny", pairs, **SMALL)
    task.fit(pairs, out=tmp_path / "run", steps=1, batch_tokens=64)
    found = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())["training"]
    recipe = get_preset("encoder_tiny").recipe("classification")["training"]
    # Fine-tuning has weight decay, and other rates.
    assert found["weight_decay"] == recipe.get("weight_decay", 0.0) == 0.0
    assert found["label_smoothing"] == recipe["label_smoothing"]


@pytest.mark.slow
def test_a_task_that_was_saved_trains_by_the_recipe_of_its_preset(tmp_path):
    task = Task.from_preset("g2p_small", PAIRS, **SMALL)
    task.save(tmp_path / "task")
    loaded = keras_attn.load(tmp_path / "task")
    assert loaded.preset == "g2p_small"
    loaded.fit(PAIRS, out=tmp_path / "run", steps=1, batch_tokens=256)
    settings = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    recipe = get_preset("g2p_small").recipe()
    assert settings["training"]["learning_rate"] == recipe["training"]["learning_rate"]
    assert settings["metrics"] == recipe["metrics"]
    assert loaded.preset is None
    assert keras_attn.load(tmp_path / "run").preset is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epoch": 3}, "`setting` must be one of .* Did you mean 'epochs'"),
        ({"resume": True}, "`resume=True` needs `out`"),
    ],
)
def test_settings_that_are_not_understood(fitted, settings, message):
    refused(message, fitted[0].fit, PAIRS, **settings)


def test_a_task_by_its_name():
    labels = [(f"{word} {n}", word) for word in ("good", "bad") for n in range(9)]
    with pytest.warns(DeprecationWarning, match="`classify` is now `classification`"):
        task = Task.from_preset("encoder_tiny", labels, task="classify")
    assert isinstance(task, ClassificationTask)
    with pytest.raises(UserError, match="Did you mean 'classification'"):
        Task.from_preset("encoder_tiny", labels, task="classificaton")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_values_are_no_texts(missing, tmp_path):
    message = "`train`: the text of example 1 is missing .None or NaN.."
    refused(message, written_data, [("a", "b"), (missing, "c")], tmp_path, "train", PARTS)


def test_names_of_files_hold_in_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = Parts(("file", "label"), of_files=True)
    (path,) = written_data([("x/0.png", "top")], tmp_path / "data", "train", parts)
    line = json.loads(pathlib.Path(path).read_text("utf-8"))
    assert line == {"file": f"{tmp_path}/x/0.png", "label": "top"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        (
            "encoder_tiny",
            [(f"{word} {n}", word) for word in ("good", "bad") for n in range(30)],
            ClassificationTask,
        ),
        ("lm_tiny", ["ab" * 9, "cd" * 9] * 30, CausalLMTask),
    ],
)
def test_other_tasks_without_a_folder(name, data, kind):
    task = kind.from_preset(name, data)
    result = task.fit(data, **FIT)
    assert result.folder is None
    assert len(result.history) == 2
    assert len(task.predict([data[0][0]])) == 1


@pytest.mark.slow
def test_texts_are_tokenized_once(tmp_path, monkeypatch):
    tokenized = []

    def counted(pairs, *arguments):
        tokenized.append(len(pairs))
        return from_pairs(pairs, *arguments)

    from_pairs = PairExamples.from_pairs
    monkeypatch.setattr(PairExamples, "from_pairs", counted)
    numbers = FIT | {"steps": 1}
    task = Task.from_preset("g2p_small", PAIRS, **SMALL)
    task.fit(PAIRS, PAIRS[:9], out=tmp_path / "run", **numbers)
    assert tokenized == [64, 9]
    task.fit(PAIRS, out=tmp_path / "again", **numbers)
    assert tokenized[2:] == [61, 3]  # now 3 pairs are held out
    other = Task.from_preset("g2p_small", PAIRS, **SMALL)
    other.fit(PAIRS[9:], PAIRS[:9], out=tmp_path / "other", **numbers)
    assert tokenized[4:] == [64, 55, 9]


def test_nothing_is_held_out_from_tokenizers_and_labels():
    task = Task.from_preset("encoder_tiny", [("good", "a"), ("bad", "b")])
    assert task.labels == ["a", "b"]
    assert set("goodbad") <= set(task.tokenizers["text"].vocabulary)


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (["a", "b"], {}, "must have the parts source, target: a list of tuples.*parts=1"),
        (PAIRS, {"validation_data": PAIRS}, "an argument of Keras' `fit`; here: `validation=`"),
        (PAIRS, {"batch_size": 8}, "here: `batch_tokens=`, which counts tokens"),
    ],
)
def test_habits_of_keras_are_answered(fitted, data, settings, message):
    refused(message, fitted[0].fit, data, **settings)


def test_texts_have_no_targets():
    message = "must have the parts text: a list of texts.*parts=2"
    refused(message, CausalLMTask.from_preset, "lm_tiny", PAIRS)


def test_options_of_evaluate(fitted):
    refused("Did you mean 'beams'", fitted[0].evaluate, PAIRS, beam=2)


def test_mistakes():
    refused("must be one for a CausalLMTask", CausalLMTask.from_preset, "g2p_small", PAIRS)
    with pytest.raises(UserError, match="must be one for a ClassificationTask. .*task='embedding'"):
        ClassificationTask.from_preset("bert_tiny", PAIRS, task="embedding")
    refused("There is no such|must be one of", Task.from_preset, "g2p_small", PAIRS, learning_rat=1)
    with pytest.raises(UserError, match="Presets have no weights: .*load_weights=True"):
        Bert.from_preset("bert_tiny", 100, load_weights=True)
