"""Runs on pairs of texts: columns to task, measured, predicted, exported; mistakes."""

import json

import pytest

from keras_attn.cli import main
from keras_attn.data.text_pairs import read_text_pairs
from keras_attn.models import SequenceClassifier, TransformerEncoder
from keras_attn.tasks import ClassificationTask, open_task
from keras_attn.tokenizers import train_tokenizer
from keras_attn.training import run as job
from tests.refusals import refused
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow

COLUMNS = {"text": 4, "other": 5, "label": 1}
OPTION = ["--columns", *(f"{role}={number}" for role, number in COLUMNS.items())]
WORDS = ["ab", "ba", "cc", "bac"]


def rows(count):
    """Lines of two ids and two texts, which are equal or not."""
    for number in range(count):
        text, other = WORDS[number % 4], WORDS[number % 4 if number % 3 else (number + 1) % 4]
        label = float(text == other)
        yield f"{label}\t{number}\tx{number}\t{text} {'a' * (number % 9)}\t{other}"


def settings_of(task, preset):
    return {
        "task": task,
        "preset": preset,
        "model": made.SIZES,
        "tokenizers": {"text": {"kind": "characters"}},
        "training": {"steps": 2, "warmup_steps": 0, "jit": "off"},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for part, count in (("train", 60), ("test", 13)):
        written(folder / f"{part}.tsv", list(rows(count)))
    base = settings_of("classification", "arena_tiny")
    data = {"train": [str(folder / "train.tsv")], "test": [str(folder / "test.tsv")]}
    data |= {"columns": COLUMNS, "hold_out": 8, "max_source_length": 12}
    job.train(folder / "run", base | {"data": data})
    return folder


def test_what_is_trained(folder):
    task = open_task(folder / "run")
    assert (task.pairs, task.labels, task.max_length) == (True, ["0.0", "1.0"], 12)
    # The tab between both texts is no character of the vocabulary.
    assert set(task.tokenizer.vocabulary[4:]) == set("abc ")


@pytest.mark.slow
def test_segments_of_a_bert(folder, tmp_path):
    """A new run uses the segments of its model, and a run that starts from another as that did."""
    base = {
        "task": "classification",
        "preset": "bert_tiny",
        "model": made.SIZES,
        "tokenizers": {"text": {"kind": "characters"}},
        "training": {"steps": 1, "warmup_steps": 0, "jit": "off"},
        "data": {"train": [str(folder / "train.tsv")], "columns": COLUMNS, "hold_out": 8},
    }
    job.train(tmp_path / "run", base)
    task = open_task(tmp_path / "run")
    assert (task.segments, task.ends_between) == (True, 1)
    task.read_pairs(True, ends_between=2, segments=False)
    task.save(tmp_path / "other")
    names = ("task", "training", "data")
    again = {name: base[name] for name in names} | {"init": str(tmp_path / "other")}
    job.train(tmp_path / "again", again)
    task = open_task(tmp_path / "again")
    assert (task.pairs, task.segments, task.ends_between) == (True, False, 2)
    one = base | {"model": made.SIZES | {"num_segments": 1}}
    job.train(tmp_path / "one", one)
    assert open_task(tmp_path / "one").segments is False


@pytest.mark.slow
def test_by_the_command_line(folder, tmp_path, capsys):
    run, exported, test = folder / "run", tmp_path / "exported", str(folder / "test.tsv")
    results = json.loads((run / "results.json").read_text())
    assert main(["export", str(run), str(exported)]) == 0
    assert main(["verify", str(exported)]) == 0
    answers = []
    for model in map(str, (run, exported)):
        out = tmp_path / "out.json"
        assert main(["evaluate", model, "--data", test, *OPTION, "--json", str(out)]) == 0
        assert json.loads(out.read_text())["accuracy"] == pytest.approx(results["accuracy"])
        capsys.readouterr()
        assert main(["predict", model, "ab aaa\tba", "cc\tcc"]) == 0
        assert main(["predict", model, test, *OPTION[:3]]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) == 2 + 13
    assert "reads pairs: an input is two texts" in made.refusal(capsys, "predict", run, "ab")
    for model in (run, exported):
        option = ["--columns", "text=4", "label=1"]
        error = made.refusal(capsys, "evaluate", model, "--data", test, *option)
        assert "reads pairs of texts: name the column of the second text, `other`" in error


def test_numbers_of_pairs(folder, tmp_path, capsys):
    """The similarity of two texts: trained, measured, exported and predicted as pairs."""
    option = [*OPTION[:3], "number=1"]
    run, exported, test = tmp_path / "run", tmp_path / "exported", str(folder / "test.tsv")
    settings = settings_of("regression", "bert_tiny")
    columns = {role.partition("=")[0]: int(role.partition("=")[2]) for role in option[1:]}
    data = {"train": [str(folder / "train.tsv")], "test": [test], "columns": columns}
    job.train(run, settings | {"data": data | {"hold_out": 8, "max_source_length": 12}})
    results = json.loads((run / "results.json").read_text())
    task = open_task(run)
    assert (task.pairs, task.segments, task.ends_between) == (True, True, 1)
    lines = [line.split("\t") for line in rows(13)]
    expected = task.predict([f"{line[3]}\t{line[4]}" for line in lines])
    errors = [abs(number - float(line[0])) for number, line in zip(expected, lines, strict=True)]
    assert results["mae"] == pytest.approx(sum(errors) / 13, rel=1e-5)
    assert main(["export", str(run), str(exported)]) == 0
    out = tmp_path / "out.json"
    for model in map(str, (run, exported)):
        assert main(["evaluate", model, "--data", test, *option, "--json", str(out)]) == 0
        assert json.loads(out.read_text())["mae"] == pytest.approx(results["mae"], rel=1e-4)
        capsys.readouterr()
        assert main(["predict", model, test, *option[:3]]) == 0
        found = [float(line) for line in capsys.readouterr().out.splitlines()]
        assert found == pytest.approx(expected.tolist(), abs=1e-4)
        error = made.refusal(
            capsys, "evaluate", model, "--data", test, option[0], "text=4", "number=1"
        )
        assert "reads pairs of texts: name the column of the second text, `other`" in error


def test_one_text_with_a_column_of_another(folder, tmp_path, capsys):
    task = ClassificationTask(*single_text(), labels=["0.0", "1.0"], max_length=12)
    task.save(tmp_path / "task")
    test, message = str(folder / "test.tsv"), "reads one text: there is no column `other`"
    command = ("evaluate", tmp_path / "task", "--data", test, *OPTION)
    assert message in made.refusal(capsys, *command)
    assert message in made.refusal(capsys, "predict", tmp_path / "task", test, *OPTION[:3])


def single_text():
    tokenizer = train_tokenizer("characters", ["abc "])
    encoder = TransformerEncoder(tokenizer.vocabulary_size, 1, 8, 2, 11)
    return SequenceClassifier(encoder, 2), tokenizer


@pytest.mark.slow
def test_in_memory(folder, tmp_path):
    """Of tables with further columns the second text is read where it is named."""
    table = {"a": ["b" * n for n in range(1, 19)], "c": ["no", "yes"] * 9}
    table["hypothesis"] = ["ba", "cc"] * 9
    columns = {"text": "a", "other": "hypothesis", "label": "c"}
    options = {"steps": 1, "jit": "off", "warmup_steps": 0}
    for named, pairs in ((columns, True), ({"text": "a", "label": "c"}, False)):
        task = ClassificationTask(*single_text(), labels=["no", "yes"], max_length=12)
        task.fit(table, columns=named, out=tmp_path / str(pairs), **options)
        assert task.pairs is open_task(tmp_path / str(pairs)).pairs is pairs
        assert task.evaluate(table, columns=named)["items"] == 18
    refused("must have the parts text, label: ", task.fit, [("ab", "no", "ba")] * 9)


def test_data_are_shown(folder, capsys):
    command = ["data", str(folder / "train.tsv"), "--task", "classification", *OPTION]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("text", "other", "label"))
    assert "0.0" in shown


@pytest.mark.slow
def test_what_was_truncated_is_said(folder, capsys, tmp_path):
    layer = json.loads(json.dumps({"preset": "arena_tiny", "model": made.SIZES}))
    layer["tokenizers"] = {"text": {"kind": "characters"}}
    layer["training"] = {"steps": 1, "warmup_steps": 0, "jit": "off"}
    layer["data"] = {"train": [str(folder / "train.tsv")], "columns": COLUMNS, "hold_out": 8}
    layer["data"] |= {"max_source_length": 8}
    job.train(tmp_path / "run", layer)
    assert "texts to 8 tokens, shared by both texts" in capsys.readouterr().out


def test_tabs_inside_of_texts(tmp_path):
    lines = ['{"a": "x y", "b": "z", "c": "no"}', '{"a": "x\\ty", "b": "z", "c": "no"}']
    path, columns = written(tmp_path / "t.jsonl", lines), {"text": "a", "other": "b", "label": "c"}
    refused("t.jsonl, line 2.*two texts without tabs, found a tab", read_text_pairs, path, columns)
    pairs = read_text_pairs(path, columns, skip_bad_lines=True)
    assert (pairs.sources, pairs.targets, pairs.skipped) == (["x y\tz"], ["no"], 1)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"data": {"columns": {"text": 4, "other": 5}}}, "it lacks label"),
        ({"data": {"max_source_length": 3}}, "leave room for a token. Received: max_length=3"),
        ({"task": "regression"}, "`columns` must be one of 'text', 'number'"),
        ({"task": "multi_label_classification"}, "`columns` must be one of 'text', 'label'"),
    ],
)
def test_mistakes(layer, message, folder, tmp_path):
    data = {"train": [str(folder / "train.tsv")], "columns": COLUMNS} | layer.get("data", {})
    layer = {"preset": "encoder_tiny", "task": "classification"} | layer | {"data": data}
    layer["tokenizers"] = {"text": {"kind": "characters"}}
    refused(message, job.train, tmp_path / "run", layer)
