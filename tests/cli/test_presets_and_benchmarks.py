"""`presets` counts as the paper does; `benchmark` prints lines of JSON."""

import json
import os
import re
from importlib.resources import files

import pytest
import yaml

from keras_attn.benchmarks import profile, train, workloads
from keras_attn.cli.benchmark import attention, complexity
from keras_attn.cli.benchmark.common import use_backend
from keras_attn.cli.parser import parse
from keras_attn.cli.train import settings_layers
from keras_attn.models import PRESETS
from keras_attn.recipes import recipe_names
from keras_attn.training.run_settings import RunSettings

TINY = {
    "hidden_dim": 8,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_dim": 11,
    "vocabulary": 17,
    "batch": 3,
    "source": 5,
    "target": 7,
    "dropout": 0.0,
}


def test_presets_count_parameters(keras_attn, monkeypatch):
    from keras_attn import models

    names = ("transformer_c_layers_2", "g2p_small", "forecast_tiny")
    few = {name: models.PRESETS[name] for name in names}
    monkeypatch.setattr(models, "PRESETS", few)
    output = keras_attn.output("presets", "--vocabulary", "1000")
    # 1000 tokens of 128, two encoder blocks and two decoder blocks, and two norms.
    attention_weights = 4 * (128 * 128 + 128)
    feed_forward = 2 * 128 * 512 + 512 + 128
    encoder = attention_weights + feed_forward + 2 * 2 * 128
    decoder = 2 * attention_weights + feed_forward + 3 * 2 * 128
    total = 1000 * 128 + 2 * (encoder + decoder) + 2 * 2 * 128
    rows = {line.split()[0]: line.split()[1] for line in output.splitlines() if " M  " in line}
    assert rows["g2p_small"] == f"{total / 1e6:.1f}"
    assert 0.01 < float(rows["forecast_tiny"]) < 1
    assert "arxiv.org/abs/1706.03762, Table 3" in output


@pytest.mark.parametrize(
    "options", [[], pytest.param(["--jit"], marks=pytest.mark.slow), ["--shared-embeddings"]]
)
def test_benchmark_train(keras_attn, monkeypatch, tmp_path, options):
    monkeypatch.setitem(train.TRAIN_WORKLOADS, "train-small", TINY)
    written = tmp_path / "lines.json"
    arguments = ["--workload", "train-small", "--steps", "2", "--json", written, *options]
    output = keras_attn.output("benchmark", "train", *arguments)
    figures = json.loads(output)
    assert written.read_text() == output
    assert {"peer": "keras_attn", "workload": "train-small", "jit": "--jit" in options}.items() <= (
        figures.items()
    )
    assert figures["tokens_per_second"] == pytest.approx(21 / figures["seconds"], rel=0.5)
    assert figures["last_loss"] < figures["first_loss"]
    assert figures["parameter_change"] > 0


@pytest.mark.slow
def test_benchmark_train_tells_where_the_time_goes(keras_attn, monkeypatch):
    monkeypatch.setitem(train.TRAIN_WORKLOADS, "train-small", TINY)
    monkeypatch.setattr(profile, "use_one_thread", lambda: None)  # TensorFlow has begun already
    output = keras_attn.output(
        "benchmark", "train", "--workload", "train-small", "--steps", "1", "--profile"
    )
    figures = json.loads(output)
    assert {"matrix products", "products of attention", "optimiser", "between ops"} <= set(
        figures["time"]
    )
    assert sum(figures["time"].values()) == pytest.approx(1, abs=0.02)
    assert 0 <= figures["of_peak"] < 1 < figures["peak_gflops"]


@pytest.mark.parametrize("options", [[], pytest.param(["--jit"], marks=pytest.mark.slow)])
def test_benchmark_decode(keras_attn, monkeypatch, options):
    tiny = TINY | {"batches": [2], "beams": [1, 3], "new_tokens": 5}
    monkeypatch.setitem(workloads.DECODE_WORKLOADS, "decode-base", tiny)
    output = keras_attn.output("benchmark", "decode", "--runs", "1", *options)
    lines = [json.loads(line) for line in output.splitlines()]
    assert [(line["batch"], line["beam"]) for line in lines] == [(2, 1), (2, 3)]
    assert all(line["tokens_per_second"] > 0 for line in lines)


@pytest.mark.slow
def test_benchmark_attention(keras_attn, tmp_path):
    picture, written = tmp_path / "growth.png", tmp_path / "lines.jsonl"
    options = ("--mechanisms", "simple", "--lengths", "64", "128", "--causal")
    output = keras_attn.output(
        "benchmark", "attention", *options, "--plot", picture, "--json", written
    )
    lines, _, table = output.partition("\n\n")
    assert written.read_text() == lines + "\n"
    assert [json.loads(line)["length"] for line in lines.splitlines()] == [64, 128]
    assert table.startswith("| mechanism | n = 64 | n = 128 | time ~ n^ | theory ~ n^ |")
    assert picture.exists()


def test_benchmark_complexity(keras_attn, monkeypatch):
    def measure(lengths, widths, **options):
        assert (lengths, widths) == ([64, 128], [8, 16])
        assert options == {"backward": False, "jit": False}
        sizes = ((64, 8), (128, 8), (64, 16))
        return iter(
            [
                {"layer": "convolutional", "length": n, "width": d, "seconds": n * d}
                for n, d in sizes
            ]
        )

    monkeypatch.setattr(complexity, "measure_complexity", measure)
    options = ("--lengths", "64", "128", "--widths", "8", "16", "--forward")
    output = keras_attn.output("benchmark", "complexity", *options)
    assert "| convolutional | k n d² | 1.00 | 1 | 1.00 | 2 |" in output


@pytest.mark.slow
def test_benchmark_fit(keras_attn, monkeypatch):
    from keras_attn.benchmarks import fit

    monkeypatch.setattr(fit, "VOCABULARY", 17)
    options = ("--preset", "g2p_small", "--batch", "3", "--length", "5", "--steps", "2")
    output = keras_attn.output("benchmark", "fit", *options)
    figures = json.loads(output)
    assert (figures["backend"], figures["batch"], figures["length"]) == ("tensorflow", 3, 5)
    assert figures["tokens_per_second"] == pytest.approx(3 * 5 / figures["seconds"], rel=0.1)
    assert figures["of_peak"] == pytest.approx(figures["tflops"] / figures["peak_tflops"], abs=0.02)


@pytest.mark.slow
def test_benchmark_attention_on_jax(keras_attn):
    options = ("--mechanisms", "flash", "--lengths", "16", "--precision", "mixed_bfloat16")
    output = keras_attn.output("benchmark", "attention", "--backend", "jax", *options)
    figures = json.loads(output.splitlines()[0])
    assert (figures["backend"], figures["precision"]) == ("jax", "mixed_bfloat16")
    assert figures["seconds"] > 0


def test_what_cannot_be_causal_is_told(keras_attn, monkeypatch):
    monkeypatch.setattr(attention, "measure_attention", lambda *_, **options: iter(()))
    status, _, error = keras_attn("benchmark", "attention", "--causal")
    assert (status, error) == (
        0,
        "Left out, because they do not support causal masking: global_local, longformer, "
        "big_bird, sinkhorn, linformer, nystrom.\n",
    )
    assert keras_attn("benchmark", "attention")[2] == ""


@pytest.mark.parametrize("kind", ["attention", "complexity", "depth", "fit", "duplication"])
@pytest.mark.parametrize(
    ("variable", "options", "expected"),
    [
        ("jax", (), "jax"),
        ("jax", ("--backend", "tensorflow"), "tensorflow"),
        ("torch", ("--backend", "jax"), "jax"),
        ("", (), "tensorflow"),
        (None, (), "tensorflow"),
    ],
)
def test_the_backend_is_the_environments(monkeypatch, kind, variable, options, expected):
    monkeypatch.setenv("KERAS_BACKEND", variable or "")
    if variable is None:
        monkeypatch.delenv("KERAS_BACKEND")
    use_backend(parse(["benchmark", kind, *options]))
    assert os.environ["KERAS_BACKEND"] == expected


def test_a_backend_that_is_not_measured(keras_attn, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    error = keras_attn.refusal("benchmark", "depth", "--blocks", "1")
    line = "`KERAS_BACKEND` must be one of 'tensorflow', 'jax'. Received: KERAS_BACKEND='torch'."
    assert error == f"keras-attn: error: {line}\n"


@pytest.mark.parametrize("kind", ["attention", "fit", "train"])
def test_a_precision_that_there_is_not(keras_attn, kind):
    error = keras_attn.refusal("benchmark", kind, "--precision", "float7")
    assert "--precision: 'float7' is none of float32, mixed_bfloat16" in error


@pytest.mark.parametrize(
    ("kind", "option", "file", "message"),
    [
        ("attention", "--plot", "missing/x.png", "must be in a folder that exists"),
        ("attention", "--plot", "x.xyz", "a picture must be FILE.png. Received"),
        ("train", "--save-batches", "missing/x.npz", "must be in a folder that exists"),
    ],
)
def test_files_are_looked_at_before_the_work(keras_attn, tmp_path, kind, option, file, message):
    assert message in keras_attn.refusal("benchmark", kind, option, tmp_path / file)


def test_help_says_which_numbers_of_updates(keras_attn):
    assert "a multiple of 100" in keras_attn("benchmark", "duplication", "--help")[1]


@pytest.mark.parametrize("kind", ["train", "decode"])
def test_what_runs_on_tensorflow_alone(keras_attn, kind):
    error = keras_attn.refusal("benchmark", kind, "--backend", "jax")
    assert "unknown argument '--backend'" in error


def test_a_kind_is_needed(keras_attn):
    error = keras_attn.refusal("benchmark")
    assert error.endswith("KIND (see `keras-attn benchmark --help`)\n")
    error = keras_attn.refusal("benchmark", "atention")
    assert "'atention' is none of train, fit, decode" in error
    assert "did you mean 'attention'?" in error


@pytest.mark.slow
def test_benchmark_duplication(keras_attn, monkeypatch):
    from keras_attn.benchmarks import duplication

    monkeypatch.setattr(duplication, "STEPS_AT_ONCE", 2)
    monkeypatch.setattr(duplication, "TEST_BATCHES", 1)
    options = ("--length", "16", "--steps", "2", "--trained", "lsh-2")
    output = keras_attn.output("benchmark", "duplication", *options)
    figures = json.loads(output.splitlines()[0])
    assert (figures["trained"], figures["length"], figures["steps"]) == ("lsh-2", 16, 2)
    assert set(figures["accuracy"]) == {"full", "lsh-8", "lsh-4", "lsh-2", "lsh-1"}
    assert output.splitlines()[-1].startswith("| lsh-2 | ")


@pytest.mark.parametrize(
    "name", ["bert_tiny", "bert_tiny.token_classification", "g2p_small", "t5_small.seq2seq"]
)
def test_a_recipe_that_is_printed_resolves_to_the_settings_of_its_preset(keras_attn, name):
    output = keras_attn.output("presets", "--recipe", name)
    preset, _, task = name.partition(".")
    data = {"data": {"train": ["file.tsv"]}}
    named = {"preset": preset} | ({"task": task} if task else {})
    expected = RunSettings.resolve(data, named)
    assert RunSettings.resolve(data, yaml.safe_load(output)) == expected
    assert (
        RunSettings.resolve(
            data, settings_layers(parse(["train", "--out", "x", "--config", name]))[0]
        )
        == expected
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bert_tny", "Did you mean 'bert_tiny'"),
        ("bert_tiny.causal_lm", "`task` must be one of .*masked_lm"),
    ],
)
def test_a_recipe_that_there_is_not(keras_attn, name, message):
    error = keras_attn.refusal("presets", "--recipe", name)
    assert re.search(message, error)


def _extended(name):
    """The recipes that a recipe extends."""
    content = yaml.safe_load((files("keras_attn.recipes") / f"{name}.yaml").read_text())
    bases = content.get("extends", [])
    return [bases] if isinstance(bases, str) else bases


def test_every_recipe_is_that_of_a_preset_and_none_is_left_over():
    used = {base for name in recipe_names() for base in _extended(name)}
    for name, preset in PRESETS.items():
        for task in preset.tasks:
            usual = [f"{name}.{task}", f"{preset.recipes}.{task}"]
            found = [file for file in usual if file in recipe_names()]
            assert found, f"{name} has no recipe for {task}"
            used |= set(found)
    of_init = {name for name in recipe_names() if name.startswith("fine_tuning.")}
    assert set(recipe_names()) == used | of_init
