"""Runs of span corruption: texts to task, measured, resumed, exported, asked, fine-tuned."""

import re

import numpy as np
import pytest
import yaml

from keras_attn.convert import from_huggingface
from keras_attn.data import SpanCorruption
from keras_attn.tasks import Seq2SeqTask, open_task
from keras_attn.training import run as job
from keras_attn.training.reporting.held_out import held_out_inputs
from tests.convert.made import T5
from tests.refusals import refused
from tests.tasks.made import make_task
from tests.training.stand_in import metrics_rows
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder, numbers = tmp_path_factory.mktemp("spans"), {"steps": 120, "epochs": None}
    return made.trained(
        "span_corruption", folder, (300, 41), hold_out=29, validate_every=120, **numbers
    )


@pytest.mark.slow
def test_it_tells_what_is_missing(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is Seq2SeqTask
    assert task.source_tokenizer.vocabulary[-12:] == [f"<extra_id_{n}>" for n in range(11, -1, -1)]
    assert (results["items"], sorted(results)) == (41, ["accuracy", "items", "perplexity"])
    assert results["accuracy"] > 70  # how many days are missing cannot be known
    assert 1 < results["perplexity"] < 2
    for day in made.DAYS:
        (found,) = task.predict([f"{day} {day} <extra_id_0> {day} {day} {day} {day} {day} {day}"])
        assert found.startswith(f"<extra_id_0> {day}")
        assert set(re.findall("[a-z]+day", found)) == {day}


@pytest.mark.slow
def test_held_out_inputs_have_gaps_as_the_model_reads_them(trained):
    folder, _ = trained
    inputs = held_out_inputs(folder / "run")
    tokenizer = open_task(folder / "run").source_tokenizer
    lines = (folder / "train").read_text().splitlines()
    assert len(inputs) == len(set(inputs)) > 3
    for text in inputs:
        (day,) = set(re.findall("[a-z]+day", text))
        assert re.sub("<extra_id_[01]>", day, text) in lines
        ids = tokenizer.tokenize([text]).to_list()[0]
        tokens = [tokenizer.vocabulary[number] for number in ids]
        assert [token for token in tokens if token.startswith("<extra")] == [
            "<extra_id_0>",
            "<extra_id_1>",
        ]


@pytest.mark.slow
def test_measured_as_by_hand(trained):
    """Text by text, without batches or padding."""
    folder, results = trained
    task = open_task(folder / "run")
    corruption = SpanCorruption(task.source_tokenizer)
    nll, tokens, right = 0.0, 0, 0
    for row, text in enumerate((folder / "test").read_text().splitlines()):
        ids = task.source_tokenizer.tokenize([text]).to_list()[0]
        source, target = corruption.drawn(np.array(ids, "int32"), [0, 0, row])
        inputs = {"source_ids": [[*source, 2]], "target_ids": [[1, *target]]}
        inputs = {name: np.array(values, "int32") for name, values in inputs.items()}
        logits = np.asarray(task.backbone(inputs))[0].astype("float64")
        labels = np.array([*target, 2])
        scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        nll -= scores[np.arange(len(labels)), labels].sum()
        tokens += len(labels)
        right += (logits.argmax(-1) == labels).sum()
    assert results["perplexity"] == pytest.approx(np.exp(nll / tokens), rel=1e-4)
    assert results["accuracy"] == pytest.approx(100 * right / tokens)


@pytest.mark.slow
def test_by_the_command_line(trained, tmp_path, capsys):
    text = "monday <extra_id_0> monday monday monday monday"
    answers = made.answers_of_a_run_and_its_export(
        trained, tmp_path, capsys, text, evaluates=(True, False)
    )
    assert answers.startswith("<extra_id_0> monday")
    command = "evaluate", trained[0] / "run", "--data", trained[0] / "test"
    error = made.refusal(capsys, *command, "--metrics", "bleu")
    assert "must be one of 'perplexity', 'accuracy'" in error
    assert "without beams. Received: beams=2" in made.refusal(capsys, *command, "--beams", "2")


@pytest.mark.slow
def test_settings_of_the_run(trained):
    folder, _ = trained
    settings = yaml.safe_load((folder / "run" / "run.yaml").read_text())
    data = settings["data"]
    assert (settings["task"], settings["metrics"]) == ("span_corruption", [])
    assert (data["noise_density"], data["mean_noise_span_length"]) == (0.15, 3.0)
    # 284 tokens, 43 of them in 14 spans: with end ids 241 + 14 + 1, and 43 + 15 + 1.
    assert (data["max_source_length"], data["max_target_length"]) == (256, 59)
    decoding = open_task(folder / "run").decoding
    assert (decoding.max_source_length, decoding.max_length, decoding.beams) == (256, 256, 1)
    assert settings["training"]["label_smoothing"] == 0.0


@pytest.mark.slow
def test_fine_tuned_on_pairs_with_the_same_tokenizer(trained, tmp_path):
    folder, _ = trained
    pairs = [
        f"{day}\t{after}"
        for day, after in zip(made.DAYS, made.DAYS[1:] + made.DAYS[:1], strict=True)
    ]
    data = {"train": written(tmp_path / "pairs.tsv", pairs * 3)}
    data["valid"] = data["train"]
    layer = {"init": str(folder / "run"), "task": "seq2seq", "data": data}
    ends = {"epochs": None, "steps": 60, "validate_every": 60}
    job.train(tmp_path / "run", layer | {"training": made.LONGER | ends})
    first, tuned = open_task(folder / "run"), open_task(tmp_path / "run")
    assert tuned.source_tokenizer.assets() == first.source_tokenizer.assets()
    assert tuned.backbone.get_config() == first.backbone.get_config()
    assert tuned.decoding == first.decoding
    assert tuned.predict(["friday", "sunday", "monday"]) == ["saturday", "monday", "tuesday"]


@pytest.mark.parametrize("task", ["span_corruption", "seq2seq"])
@pytest.mark.slow
def test_a_converted_t5_goes_on_with_either(task, tmp_path):
    converted = from_huggingface(T5["t5"])
    converted.save(tmp_path / "t5")
    texts = ["the fox and the dogs", "a cat", "dogs and cats and the quick fox"] * 20
    rows = [f"{text}\t{text}" for text in texts] if task == "seq2seq" else texts
    layer = {"init": str(tmp_path / "t5"), "task": task}
    layer["data"] = {"train": written(tmp_path / "data.txt", rows), "hold_out": 2}
    job.train(tmp_path / "run", layer | {"training": made.LONGER | {"epochs": None, "steps": 3}})
    found = open_task(tmp_path / "run")
    assert found.source_tokenizer.vocabulary == converted.source_tokenizer.vocabulary
    assert found.decoding.replace(max_source_length=512) == converted.decoding
    before, after = (np.asarray(one.backbone.weights[0]) for one in (converted, found))
    assert 0 < np.abs(before - after).max() < 0.05
    assert np.isfinite(float(metrics_rows(tmp_path / "run")[-1]["loss"]))


def test_a_task_of_two_vocabularies(tmp_path):
    make_task().save(tmp_path / "task")
    layer = {"init": str(tmp_path / "task"), "task": "span_corruption"}
    layer["data"] = {"train": written(tmp_path / "data.txt", ["a b"] * 9), "hold_out": 2}
    refused("one vocabulary for both sides. Received: source=", job.train, tmp_path / "run", layer)
