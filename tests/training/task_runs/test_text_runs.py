"""Runs of language models and classifiers: texts to task, measured, resumed, exported, served."""

import json
import math

import pytest

from keras_attn import layers
from keras_attn.cli import main
from keras_attn.export import export_saved_model
from keras_attn.tasks import CausalLMTask, ClassificationTask, open_task
from keras_attn.training import run as job
from keras_attn.training.reporting.held_out import held_out_inputs
from keras_attn.validation import UserError
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    return made.trained(
        "causal_lm", tmp_path_factory.mktemp("causal_lm"), (300, 17), hold_out=23, steps=120
    )


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    return made.trained("classification", folder, (400, 60), steps=150, validate_every=75)


@pytest.mark.slow
def test_a_language_model_learns_to_count(language_model):
    folder, results = language_model
    task = open_task(folder / "run")
    assert type(task) is CausalLMTask
    # Where a line starts and how long it is nobody knows: about a factor of two a token.
    assert 1 < results["perplexity"] < 2.5
    texts = (folder / "test").read_text().splitlines()
    assert results == {"items": 17, "perplexity": pytest.approx(task.text_perplexity(texts))}
    log_probabilities = task.score([""] * len(texts), texts)
    tokens = sum(len(text) + 1 for text in texts)
    expected = math.exp(-sum(log_probabilities) / tokens)
    assert results["perplexity"] == pytest.approx(expected, rel=1e-4)
    (continuation,) = task.predict(["cdef"])
    assert "gabcdefgabcdefgabc".startswith(continuation)


def test_held_out_inputs_of_a_language_model_are_beginnings(language_model):
    folder, _ = language_model
    inputs = held_out_inputs(folder / "run")
    lines = (folder / "train").read_text().splitlines()
    assert len(inputs) == len(set(inputs)) > 3
    assert all(any(line.startswith(text) and line != text for line in lines) for text in inputs)


@pytest.mark.slow
def test_long_lines_are_trained_and_measured_in_pieces(language_model, tmp_path):
    folder, _ = language_model
    lines = ["abcdefg" * 9, "fgabcdefgab", "c" * 5] * 7
    data = {"train": written(tmp_path / "long.txt", lines), "max_source_length": 10}
    layer = {"init": str(folder / "run"), "task": "causal_lm", "data": data}
    job.train(tmp_path / "run", layer | {"training": made.TRAINING | {"steps": 2}})
    task = open_task(tmp_path / "run")
    assert task.decoding.max_length == 10
    assert 1 < task.text_perplexity(lines) < 1000


@pytest.mark.slow
def test_a_classifier_learns_to_see_a_letter(classifier):
    folder, results = classifier
    task = open_task(folder / "run")
    assert type(task) is ClassificationTask
    assert task.labels == ["with x", "without"]
    assert results["items"] < 61
    assert results["accuracy"] > 90
    assert task.predict(["aaxbc", "abcab"]) == ["with x", "without"]
    sample = json.loads((folder / "run" / "samples.json").read_text())[-1]["texts"][0]
    assert sample[1] in task.labels


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["language_model", "classifier"])
def test_evaluated_exported_verified_and_asked(kind, request, tmp_path, capsys):
    trained = request.getfixturevalue(kind)
    evaluates = True, kind == "classifier"
    answers = made.answers_of_a_run_and_its_export(
        trained, tmp_path, capsys, "aaxbc", "abc", evaluates=evaluates
    )
    assert answers.count("\n") == 2


@pytest.mark.slow
def test_an_exported_language_model_is_measured_as_its_run(language_model, tmp_path, capsys):
    folder, results = language_model
    exported = export_saved_model(open_task(folder / "run"), tmp_path / "exported", n_best=1)
    out = tmp_path / "out.json"
    command = ["evaluate", str(exported), "--data", str(folder / "test"), "--json", str(out)]
    assert main(command) == 0
    assert json.loads(out.read_text()) == pytest.approx(results, rel=1e-4)
    capsys.readouterr()
    assert main(["evaluate", str(exported), "--data", written(tmp_path / "long", ["ab" * 99])]) == 2
    error = capsys.readouterr().err
    assert "must have at most 23 tokens. Received: 198 tokens in '', 'abab" in error
    assert error.endswith("Use the run or the task folder to measure longer texts, in pieces.\n")
    assert error.count("\n") == 1
    assert main([*command, "--metrics", "bleu"]) == 2
    assert "must be one of 'perplexity'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("preset", "attention", "expected"),
    [
        ("encoder_tiny", "local", layers.LocalAttention),
        ("lm_tiny", {"name": "linear", "use_bias": False}, layers.LinearAttention),
        ("lm_tiny", "random_synthesizer", layers.RandomSynthesizer),
    ],
)
@pytest.mark.slow
def test_attention_by_name(preset, attention, expected, language_model, classifier, tmp_path):
    folder = classifier[0]
    if preset == "lm_tiny":
        folder = language_model[0]
    layer = {"preset": preset, "attention": attention, "data": {"train": str(folder / "train")}}
    layer |= {"model": made.SIZES, "training": made.TRAINING | {"steps": 1}}
    job.train(tmp_path / "run", layer)
    task = open_task(tmp_path / "run")
    found = [part for part in task.backbone._flatten_layers() if type(part) is expected]
    assert len(found) == 1
    assert found[0].use_bias == isinstance(attention, str)
    assert len(task.predict(["abc", "fga"])) == 2


def test_a_label_that_training_has_not(classifier, tmp_path):
    folder, _ = classifier
    valid = written(tmp_path / "valid.tsv", ["ab\tother", "b\twithout"])
    data = {"train": str(folder / "train"), "valid": valid}
    with pytest.raises(UserError, match=r"Text 1 of .*valid.tsv has a label that does not occur"):
        job.train(tmp_path / "run", {"preset": "encoder_tiny", "data": data, "model": made.SIZES})


@pytest.mark.slow
def test_test_labels_that_training_has_not_are_told(classifier, tmp_path, capsys):
    folder, _ = classifier
    test = written(tmp_path / "test.tsv", ["ab\tother", "b\twithout", "c\tother", "a\tnew"])
    line = f"{test}: 3 of 4 labels are unknown to the model and count as wrong: 'other', 'new'"
    assert main(["evaluate", str(folder / "run"), "--data", test]) == 0
    assert line in capsys.readouterr().out.splitlines()
    data = {"train": str(folder / "train"), "test": test}
    layer = {"preset": "encoder_tiny", "data": data, "model": made.SIZES}
    job.train(tmp_path / "run", layer | {"training": made.TRAINING | {"steps": 1}})
    assert line in capsys.readouterr().out.splitlines()
    assert main(["evaluate", str(folder / "run"), "--data", str(folder / "test")]) == 0
    assert "unknown" not in capsys.readouterr().out
