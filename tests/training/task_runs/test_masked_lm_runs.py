"""Runs of masked language models: texts to task, measured, resumed, exported, asked."""

import pytest

from keras_attn.cli import main
from keras_attn.tasks import MaskedLMTask, open_task
from keras_attn.training.reporting.held_out import held_out_inputs
from tests.training.task_runs import made

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    numbers = {"steps": 80, "epochs": None, "validate_every": 80}
    return made.trained(
        "masked_lm", tmp_path_factory.mktemp("masked_lm"), (300, 41), hold_out=29, **numbers
    )


@pytest.mark.slow
def test_it_fills_gaps_with_the_day_beside_them(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is MaskedLMTask
    assert task.backbone.encoder.pooler is None
    texts = (folder / "test").read_text().splitlines()
    assert results == {"items": 41} | task.masked_scores(texts)
    assert results["accuracy"] > 90
    assert 1 < results["perplexity"] < 2
    gaps = ["monday [MASK] monday", "[MASK] sunday sunday [MASK] sunday"]
    assert task.predict(gaps) == ["monday monday monday", " ".join(["sunday"] * 5)]


@pytest.mark.slow
def test_held_out_inputs_have_one_gap(trained):
    folder, _ = trained
    inputs = held_out_inputs(folder / "run")
    lines = (folder / "train").read_text().splitlines()
    assert len(inputs) == len(set(inputs)) > 3
    for text in inputs:
        before, after = text.split("[MASK]")
        day = (before or after).split()[0]
        assert f"{before}{day}{after}" in lines


@pytest.mark.slow
def test_by_the_command_line(trained, tmp_path, capsys):
    inputs = "--n-best", "2", "friday [MASK] friday", "monday"
    answers = made.answers_of_a_run_and_its_export(
        trained, tmp_path, capsys, *inputs, evaluates=(True, False)
    )
    first, second, *others = answers.splitlines()
    assert first == "1\tfriday friday friday"
    assert second.startswith("1\tfriday ")
    assert others == ["2\tmonday"]  # there is no second way
    run, data = trained[0] / "run", ("--data", trained[0] / "test")
    assert main(["evaluate", str(run), *map(str, data)]) == 0
    shown = capsys.readouterr().out.split()
    assert shown[:2] == ["lines", "41"]
    assert shown[2::2] == ["perplexity", "accuracy"]
    error = made.refusal(capsys, "evaluate", tmp_path / "exported", *data)
    assert "measured with a run or a task folder" in error
    error = made.refusal(capsys, "evaluate", run, *data, "--metrics", "bleu")
    assert "must be one of 'perplexity', 'accuracy'" in error
