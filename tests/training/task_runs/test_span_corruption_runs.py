"""Runs of span corruption: texts to task, measured, resumed, exported, asked, fine-tuned."""

import json
import re

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

from keras_attn.cli import main
from keras_attn.convert import from_huggingface
from keras_attn.data import SpanCorruption
from keras_attn.tasks import Seq2SeqTask, open_task
from keras_attn.training import run as job
from keras_attn.validation import UserError
from tests.convert.made import T5
from tests.tasks.made import make_task

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 32, "num_heads": 2, "key_dim": 16, "intermediate_dim": 64}
SIZES |= {"dropout": 0.0}
TRAINING = {
    "batch_tokens": 512,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 10,
    "jit": "off",
}
TOKENIZERS = {
    "source": {
        "kind": "sentencepiece",
        "model_type": "bpe",
        "vocabulary_size": 68,
        "sentinels": 12,
    }
}
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def lines(count, seed):
    """A day, again and again; the vocabulary has each as a piece."""
    generator = np.random.default_rng(seed)
    return [" ".join([generator.choice(DAYS)] * generator.integers(6, 15)) for _ in range(count)]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    data = {"train": written(folder / "train.txt", lines(300, 1))}
    data |= {"test": written(folder / "test.txt", lines(41, 2)), "hold_out": 29}
    layer = {"preset": "t5_tiny", "task": "span_corruption", "data": data, "model": SIZES}
    layer["tokenizers"] = TOKENIZERS
    layer["training"] = TRAINING | {"steps": 120, "epochs": None, "validate_every": 120}
    return folder, job.train(folder / "run", layer)


def test_it_tells_what_is_missing(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is Seq2SeqTask
    assert task.source_tokenizer.vocabulary[-12:] == [f"<extra_id_{n}>" for n in range(11, -1, -1)]
    assert (results["items"], sorted(results)) == (41, ["accuracy", "items", "perplexity"])
    assert results["accuracy"] > 70  # how many days are missing cannot be known
    assert 1 < results["perplexity"] < 2
    for day in DAYS:
        (found,) = task.predict([f"{day} {day} <extra_id_0> {day} {day} {day} {day} {day} {day}"])
        assert found.startswith(f"<extra_id_0> {day}")
        assert set(re.findall("[a-z]+day", found)) == {day}


def test_measured_as_by_hand(trained):
    """Text by text, without batches or padding."""
    folder, results = trained
    task = open_task(folder / "run")
    corruption = SpanCorruption(task.source_tokenizer)
    nll, tokens, right = 0.0, 0, 0
    for row, text in enumerate((folder / "test.txt").read_text().splitlines()):
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
        assert main(["predict", model, "monday <extra_id_0> monday monday monday monday"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert answers[0].startswith("<extra_id_0> monday")
    assert main(["evaluate", run, "--data", test, "--metrics", "bleu"]) == 2
    assert "must be one of 'perplexity', 'accuracy'" in capsys.readouterr().err
    assert main(["evaluate", run, "--data", test, "--beams", "2"]) == 2
    assert "without a beam search. Received: beams=2" in capsys.readouterr().err


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
    pairs = [f"{day}\t{after}" for day, after in zip(DAYS, DAYS[1:] + DAYS[:1], strict=True)]
    data = {"train": written(tmp_path / "pairs.tsv", pairs * 3)}
    data["valid"] = data["train"]
    layer = {"init": str(folder / "run"), "task": "seq2seq", "data": data}
    ends = {"epochs": None, "steps": 60, "validate_every": 60}
    job.train(tmp_path / "run", layer | {"training": TRAINING | ends})
    first, tuned = open_task(folder / "run"), open_task(tmp_path / "run")
    assert tuned.source_tokenizer.assets() == first.source_tokenizer.assets()
    assert tuned.backbone.get_config() == first.backbone.get_config()
    assert tuned.decoding == first.decoding
    assert tuned.predict(["friday", "sunday", "monday"]) == ["saturday", "monday", "tuesday"]


@pytest.mark.parametrize(
    "task", ["span_corruption", pytest.param("seq2seq", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_a_converted_t5_goes_on_with_either(task, tmp_path):
    converted = from_huggingface(T5["t5"])
    converted.save(tmp_path / "t5")
    texts = ["the fox and the dogs", "a cat", "dogs and cats and the quick fox"] * 20
    rows = [f"{text}\t{text}" for text in texts] if task == "seq2seq" else texts
    layer = {"init": str(tmp_path / "t5"), "task": task}
    layer["data"] = {"train": written(tmp_path / "data.txt", rows), "hold_out": 2}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"epochs": None, "steps": 3}})
    found = open_task(tmp_path / "run")
    assert found.source_tokenizer.vocabulary == converted.source_tokenizer.vocabulary
    assert found.decoding.replace(max_source_length=512) == converted.decoding
    before, after = (np.asarray(one.backbone.weights[0]) for one in (converted, found))
    assert 0 < np.abs(before - after).max() < 0.05
    metrics = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert np.isfinite(float(metrics[-1].split(",")[2]))


@pytest.mark.slow
def test_a_run_that_is_resumed_ends_alike(trained, tmp_path):
    """In the middle of the second epoch, where other spans are dropped than in the first."""
    data = {"train": str(trained[0] / "test.txt"), "hold_out": 5}
    data |= {"noise_density": 0.3, "mean_noise_span_length": 2}
    layer = {"init": str(trained[0] / "run"), "task": "span_corruption", "data": data}
    layer["training"] = TRAINING | {"batch_tokens": 128, "epochs": 2, "log_every": 1}
    job.train(tmp_path / "whole", layer)
    rows = (tmp_path / "whole" / "metrics.csv").read_text().splitlines()
    steps = (len(rows) - 1) // 2
    assert steps > 2
    half = layer["training"] | {"steps": steps + 2, "checkpoint_every": 1}
    job.train(tmp_path / "halves", layer | {"training": half})
    job.train(tmp_path / "halves", {"training": {"steps": None}}, resume=True)
    resumed = (tmp_path / "halves" / "metrics.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in resumed] == [row.split(",")[:3] for row in rows]
    last = [max((tmp_path / name / "checkpoints").glob("step-*")) for name in ("whole", "halves")]
    assert last[0].name == last[1].name
    whole, halves = (load_file(folder / "state.safetensors") for folder in last)
    assert whole.keys() == halves.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(values, halves[name], err_msg=name)
    settings = yaml.safe_load((tmp_path / "whole" / "run.yaml").read_text())
    assert settings["data"]["noise_density"] == 0.3
    assert settings["training"]["epochs"] == 2


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"metrics": ["bleu"]}, "without `metrics`. Received: metrics=.'bleu'"),
        ({"decoding": {"beam": 2}}, "Did you mean 'beams'"),
        ({"tokenizers": {"shared": False}}, "`tokenizers.shared`. Received: shared=False"),
        ({"tokenizers": {"target": {}}}, "must be one of 'shared', 'source'"),
        ({"tokenizers": {"source": {"kind": "characters"}}}, "with sentinels.*tokenizer='char"),
        ({"tokenizers": {"source": {"sentinels": 1}}}, "needed=2, sentinels=1"),
        ({"data": {"noise_density": 1}}, "above 0 and below 1. Received: noise_density=1"),
        ({"data": {"mean_noise_span_length": 0}}, "at least 1. Rec.*mean_noise_span_length=0"),
        (
            {"data": {"max_source_length": 1}},
            "needs at least a token and an end id.*max_source_length=1",
        ),
        ({"preset": "lm_tiny"}, "one for this task.*task='span_corruption', tasks_of_.*'lm'"),
    ],
)
def test_mistakes(layer, message, trained, tmp_path):
    base = {"preset": "t5_tiny", "task": "span_corruption", "tokenizers": TOKENIZERS}
    base["data"] = {"train": str(trained[0] / "train.txt")}
    with pytest.raises(UserError, match=message):
        job.train(tmp_path / "run", base, layer)


def test_a_task_of_two_vocabularies(tmp_path):
    make_task().save(tmp_path / "task")
    layer = {"init": str(tmp_path / "task"), "task": "span_corruption"}
    layer["data"] = {"train": written(tmp_path / "data.txt", ["a b"] * 9), "hold_out": 2}
    with pytest.raises(UserError, match="one vocabulary for both sides. Received: source="):
        job.train(tmp_path / "run", layer)
