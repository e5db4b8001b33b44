"""Runs of language models and classifiers: texts to task, measured, resumed, exported, served."""

import json
import math

import numpy as np
import pytest

from keras_attn import layers
from keras_attn.cli import main
from keras_attn.export import export_saved_model
from keras_attn.tasks import CausalLMTask, ClassificationTask, open_task
from keras_attn.training import run as job
from keras_attn.validation import UserError

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "dropout": 0.0}
TRAINING = {
    "batch_tokens": 256,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 3,
    "jit": "off",
}


def counting(count, seed):
    """Lines that count on in steps of one from anywhere in "abcdefg", round and round."""
    generator = np.random.default_rng(seed)
    return [
        "".join("abcdefg"[(start + i) % 7] for i in range(3 + more))
        for start, more in generator.integers(0, 12, (count, 2))
    ]


def labelled(count, seed):
    """Words, and whether they have an x in them."""
    generator = np.random.default_rng(seed)
    words = [
        "".join(generator.choice(list("abcx"), 5, p=[0.3, 0.3, 0.3, 0.1])) for _ in range(count)
    ]
    return [f"{word}\t{'with x' if 'x' in word else 'without'}" for word in words]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm")
    data = {"train": written(folder / "train.txt", counting(300, 1))}
    data |= {"test": written(folder / "test.txt", counting(17, 2)), "hold_out": 23}
    layer = {"preset": "lm_tiny", "data": data, "model": SIZES}
    layer["training"] = TRAINING | {"steps": 120}
    return folder, job.train(folder / "run", layer)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    data = {
        part: written(folder / f"{part}.tsv", labelled(count, seed))
        for part, count, seed in (("train", 400, 1), ("test", 60, 2))
    }
    layer = {"preset": "encoder_tiny", "data": data, "model": SIZES}
    layer["training"] = TRAINING | {"steps": 150, "validate_every": 75}
    return folder, job.train(folder / "run", layer)


def test_a_language_model_learns_to_count(language_model):
    folder, results = language_model
    task = open_task(folder / "run")
    assert type(task) is CausalLMTask
    # Where a line starts and how long it is nobody knows: about a factor of two a token.
    assert 1 < results["perplexity"] < 2.5
    texts = (folder / "test.txt").read_text().splitlines()
    assert results == {"items": 17, "perplexity": pytest.approx(task.text_perplexity(texts))}
    log_probabilities = task.score([""] * len(texts), texts)
    tokens = sum(len(text) + 1 for text in texts)
    expected = math.exp(-sum(log_probabilities) / tokens)
    assert results["perplexity"] == pytest.approx(expected, rel=1e-4)
    (continuation,) = task.predict(["cdef"])
    assert "gabcdefgabcdefgabc".startswith(continuation)


@pytest.mark.slow
def test_long_lines_are_trained_and_measured_in_pieces(language_model, tmp_path):
    folder, _ = language_model
    lines = ["abcdefg" * 9, "fgabcdefgab", "c" * 5] * 7
    data = {"train": written(tmp_path / "long.txt", lines), "max_source_length": 10}
    layer = {"init": str(folder / "run"), "task": "lm", "data": data}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 2}})
    task = open_task(tmp_path / "run")
    assert task.decoding.max_length == 10
    assert 1 < task.text_perplexity(lines) < 1000


def test_a_classifier_learns_to_see_a_letter(classifier):
    folder, results = classifier
    task = open_task(folder / "run")
    assert type(task) is ClassificationTask
    assert task.labels == ["with x", "without"]
    assert results["items"] < 61
    assert results["exact_match"] > 90
    assert task.predict(["aaxbc", "abcab"]) == ["with x", "without"]
    sample = json.loads((folder / "run" / "samples.json").read_text())[-1]["texts"][0]
    assert sample[1] in task.labels


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_alike(language_model, tmp_path):
    folder, _ = language_model
    layer = {"preset": "lm_tiny", "data": {"train": str(folder / "train.txt")}, "model": SIZES}
    layer["training"] = TRAINING | {"epochs": 2, "steps": None}
    job.train(tmp_path / "whole", layer)
    first = layer | {"training": layer["training"] | {"epochs": 1}}
    job.train(tmp_path / "halves", first)
    job.train(tmp_path / "halves", {"training": {"epochs": 2}}, resume=True)
    tables = [(tmp_path / name / "metrics.csv").read_text() for name in ("whole", "halves")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    "kind", [pytest.param("language_model", marks=pytest.mark.slow), "classifier"]
)
def test_evaluated_exported_verified_and_asked(kind, request, tmp_path, capsys):
    folder, results = request.getfixturevalue(kind)
    run, exported = str(folder / "run"), str(tmp_path / "exported")
    test = next(folder.glob("test.*"))
    assert main(["evaluate", run, "--data", str(test), "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == pytest.approx(results)
    assert main(["export", run, exported]) == 0
    assert main(["verify", exported]) == 0
    capsys.readouterr()
    answers = []
    for model in (run, exported):
        assert main(["predict", model, "aaxbc", "abc"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == 2
    if kind == "classifier":
        assert main(["evaluate", exported, "--data", str(test)]) == 0
        assert f"{results['exact_match']:.2f}" in capsys.readouterr().out


@pytest.mark.slow
def test_an_exported_language_model_is_measured_as_its_run(language_model, tmp_path, capsys):
    folder, results = language_model
    exported = export_saved_model(open_task(folder / "run"), tmp_path / "exported", n_best=1)
    out = tmp_path / "out.json"
    command = ["evaluate", str(exported), "--data", str(folder / "test.txt"), "--json", str(out)]
    assert main(command) == 0
    assert json.loads(out.read_text()) == pytest.approx(results, rel=1e-4)
    capsys.readouterr()
    assert main(["evaluate", str(exported), "--data", written(tmp_path / "long", ["ab" * 99])]) == 2
    error = capsys.readouterr().err
    assert "must have at most 23 tokens. Received: 198 tokens in '', 'abab" in error
    assert error.endswith("The run or the task folder measures longer texts, in pieces.\n")
    assert error.count("\n") == 1
    assert main([*command, "--metrics", "bleu"]) == 2
    assert "must be one of 'perplexity'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("preset", "attention", "expected"),
    [
        pytest.param("encoder_tiny", "local", layers.LocalAttention, marks=pytest.mark.slow),
        ("lm_tiny", {"name": "linear", "use_bias": False}, layers.LinearAttention),
        pytest.param(
            "lm_tiny", "random_synthesizer", layers.RandomSynthesizer, marks=pytest.mark.slow
        ),
    ],
)
@pytest.mark.slow
def test_attention_by_name(preset, attention, expected, language_model, classifier, tmp_path):
    folder, name = (classifier[0], "train.tsv")
    if preset == "lm_tiny":
        folder, name = (language_model[0], "train.txt")
    layer = {"preset": preset, "attention": attention, "data": {"train": str(folder / name)}}
    layer |= {"model": SIZES, "training": TRAINING | {"steps": 1}}
    job.train(tmp_path / "run", layer)
    task = open_task(tmp_path / "run")
    found = [part for part in task.backbone._flatten_layers() if type(part) is expected]
    assert len(found) == 1
    assert found[0].use_bias == isinstance(attention, str)
    assert len(task.predict(["abc", "fga"])) == 2


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"preset": "lm_tiny", "metrics": ["bleu"]}, "by its perplexity, without `metrics`"),
        ({"preset": "encoder_tiny", "decoding": {"beams": 2}}, "A classifier has no `decoding`"),
        ({"preset": "encoder_tiny", "metrics": ["bleu"]}, "must be one of 'exact_match'"),
        ({"preset": "encoder_tiny", "model": {"heads": 2}}, "Received: model setting='heads'"),
        ({"preset": "lm_tiny", "data": {"hold_out": 300}}, "fewer must be held out.*hold_out=300"),
        ({"preset": "lm_tiny", "tokenizers": {"source": {}}}, "must be one of 'text'"),
        ({"preset": "lm_tiny", "attention": "locale"}, "Did you mean 'local'"),
        ({"preset": "lm_tiny", "attention": {"windw": 3}}, "`attention` must have a name"),
        (
            {"preset": "lm_tiny", "attention": {"name": "local", "sliding_windw": 5}},
            "Did you mean 'sliding_window'.*attention local='sliding_windw'",
        ),
        (
            {"preset": "lm_tiny", "attention": {"name": "local", "sliding_window": "wide"}},
            "sliding_window='wide'",
        ),
        (
            {"preset": "lm_tiny", "attention": {"name": "local", "num_heads": 5}},
            "set `model.num_heads`. Received: num_heads=5",
        ),
        (
            {"preset": "lm_tiny", "attention": {"name": "dense", "key_dim": 7}},
            "set `model.hidden_dim` and `model.num_heads`. Received: key_dim=7",
        ),
        (
            {"preset": "lm_tiny", "attention": {"name": "random_synthesizer", "max_length": 9}},
            "set `data.max_source_length`. Received: max_length=9",
        ),
        ({"preset": "lm_tiny", "attention": "global_local"}, "support causal masking"),
    ],
)
def test_mistakes(layer, message, language_model, tmp_path):
    data = {"train": str(language_model[0] / "train.txt")} | layer.get("data", {})
    with pytest.raises(UserError, match=message):
        job.train(tmp_path / "run", layer | {"data": data})


def test_a_label_that_training_has_not(classifier, tmp_path):
    folder, _ = classifier
    valid = written(tmp_path / "valid.tsv", ["ab\tother", "b\twithout"])
    data = {"train": str(folder / "train.tsv"), "valid": valid}
    with pytest.raises(UserError, match=r"Text 1 of .*valid.tsv has a label that the training"):
        job.train(tmp_path / "run", {"preset": "encoder_tiny", "data": data, "model": SIZES})


def test_test_labels_that_training_has_not_are_told(classifier, tmp_path, capsys):
    folder, _ = classifier
    test = written(tmp_path / "test.tsv", ["ab\tother", "b\twithout", "c\tother", "a\tnew"])
    line = (
        f"{test}: 3 of 4 labels are none that the model knows, and count as wrong: 'other', 'new'"
    )
    assert main(["evaluate", str(folder / "run"), "--data", test]) == 0
    assert line in capsys.readouterr().out.splitlines()
    data = {"train": str(folder / "train.tsv"), "test": test}
    layer = {"preset": "encoder_tiny", "data": data, "model": SIZES}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1}})
    assert line in capsys.readouterr().out.splitlines()
    assert main(["evaluate", str(folder / "run"), "--data", str(folder / "test.tsv")]) == 0
    assert "knows" not in capsys.readouterr().out
