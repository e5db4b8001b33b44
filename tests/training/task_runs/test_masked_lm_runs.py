"""Runs of masked language models: texts to task, measured, resumed, exported, asked."""

import json

import numpy as np
import pytest
import yaml

from keras_attn.cli import main
from keras_attn.tasks import MaskedLMTask, open_task
from keras_attn.training import run as job
from keras_attn.validation import UserError

pytestmark = pytest.mark.tensorflow

SIZES = {
    "num_layers": 1,
    "hidden_dim": 32,
    "num_heads": 2,
    "intermediate_dim": 64,
    "max_length": 24,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
TRAINING = {
    "batch_tokens": 512,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 10,
    "jit": "off",
}
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def lines(count, seed):
    """A day, again and again."""
    generator = np.random.default_rng(seed)
    return [" ".join([generator.choice(DAYS)] * generator.integers(4, 9)) for _ in range(count)]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlm")
    data = {"train": written(folder / "train.txt", lines(300, 1))}
    data |= {"test": written(folder / "test.txt", lines(41, 2)), "hold_out": 29}
    layer = {"preset": "bert_tiny", "task": "mlm", "data": data, "model": SIZES}
    layer["tokenizers"] = {"text": {"kind": "word_piece", "vocabulary_size": 60}}
    layer["training"] = TRAINING | {"steps": 80, "epochs": None, "validate_every": 80}
    return folder, job.train(folder / "run", layer)


def test_it_fills_gaps_with_the_day_beside_them(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is MaskedLMTask
    assert task.backbone.encoder.pooler is None
    texts = (folder / "test.txt").read_text().splitlines()
    assert results == {"items": 41} | task.masked_scores(texts)
    assert results["accuracy"] > 90
    assert 1 < results["perplexity"] < 2
    gaps = ["monday [MASK] monday", "[MASK] sunday sunday [MASK] sunday"]
    assert task.predict(gaps) == ["monday monday monday", " ".join(["sunday"] * 5)]


@pytest.mark.slow
def test_by_the_command_line(trained, tmp_path, capsys):
    folder, results = trained
    run, exported = str(folder / "run"), str(tmp_path / "exported")
    test, out = str(folder / "test.txt"), tmp_path / "out.json"
    assert main(["evaluate", run, "--data", test, "--json", str(out)]) == 0
    assert json.loads(out.read_text()) == pytest.approx(results)
    shown = capsys.readouterr().out.split()
    assert shown[:2] == ["lines", "41"]
    assert shown[2::2] == ["perplexity", "accuracy"]
    assert main(["export", run, exported]) == 0
    assert main(["verify", exported]) == 0
    answers = []
    for model in (run, exported):
        capsys.readouterr()
        assert main(["predict", model, "--n-best", "2", "friday [MASK] friday", "monday"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    first, second, *others = answers[0].splitlines()
    assert first == "1\tfriday friday friday"
    assert second.startswith("1\tfriday ")
    assert others == ["2\tmonday"]  # there is no second way
    assert main(["evaluate", exported, "--data", test]) == 2
    assert "measured with a run or a task folder" in capsys.readouterr().err
    assert main(["evaluate", run, "--data", test, "--metrics", "bleu"]) == 2
    assert "must be one of 'perplexity', 'accuracy'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_alike(trained, tmp_path):
    """In the middle of the second epoch, where other tokens are hidden than in the first."""
    data = {"train": str(trained[0] / "test.txt"), "whole_words": True, "hold_out": 5}
    layer = {"init": str(trained[0] / "run"), "data": data}
    layer["training"] = TRAINING | {"batch_tokens": 128, "epochs": 2, "log_every": 1}
    job.train(tmp_path / "whole", layer)
    rows = (tmp_path / "whole" / "metrics.csv").read_text().splitlines()
    steps = (len(rows) - 1) // 2
    assert steps > 2
    half = layer["training"] | {"steps": steps + 2, "checkpoint_every": 1}
    job.train(tmp_path / "halves", layer | {"training": half})
    job.train(tmp_path / "halves", {"training": {"steps": None}}, resume=True)
    resumed = (tmp_path / "halves" / "metrics.csv").read_text().splitlines()
    assert rows[0].startswith("step,epoch,loss,")
    assert [row.split(",")[:3] for row in resumed] == [row.split(",")[:3] for row in rows]
    settings = yaml.safe_load((tmp_path / "whole" / "run.yaml").read_text())
    assert (settings["task"], settings["data"]["whole_words"]) == ("mlm", True)
    assert settings["training"]["label_smoothing"] == 0.0


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"metrics": ["bleu"]}, "without `metrics`. Received: metrics=.'bleu'"),
        ({"decoding": {"beams": 2}}, "has no `decoding`. Received: decoding=.'beams': 2."),
        (
            {"tokenizers": {"text": {"kind": "characters"}}},
            "mask token: the kind word_piece. Received: t",
        ),
        ({"data": {"whole_words": 2}}, "`whole_words` must be true or false. Received: whole_w"),
        ({"data": {"max_source_length": 2}}, "room for a token .*max_length=2"),
        ({"preset": "lm_tiny"}, "one for this task.*task='mlm', tasks_of_preset=.'lm'"),
    ],
)
def test_mistakes(layer, message, trained, tmp_path):
    data = {"train": str(trained[0] / "train.txt")} | layer.get("data", {})
    base = {"preset": "bert_tiny", "task": "mlm"}
    base["tokenizers"] = {"text": {"kind": "word_piece", "vocabulary_size": 60}}
    with pytest.raises(UserError, match=message):
        job.train(tmp_path / "run", base | layer | {"data": data})
