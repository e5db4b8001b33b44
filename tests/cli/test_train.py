"""Options of `train` as settings, and a small run from a file to a task."""

import json

import pytest
import yaml

PAIRS = [(word, " ".join(word.upper())) for word in ("abc", "bad", "cafe", "dab", "ebb", "fade")]


@pytest.fixture
def called(keras_attn, monkeypatch):
    """Calls `train`; returns the layers of settings that reach the job, and its other arguments."""
    calls = []
    monkeypatch.setattr(
        "keras_attn.training.run.train",
        lambda out, *layers, resume: calls.append((out, layers, resume)),
    )

    def call(*arguments):
        status, _, error = keras_attn("train", "--out", "run", *arguments)
        assert (status, error) == (0, "")
        return calls[-1]

    return call


def test_options_become_settings(called):
    out, layers, resume = called(
        "--preset", "g2p_small", "--data", "a.en", "a.de", "--valid", "v.tsv", "--seed", "7",
        "--precision", "mixed_bfloat16", "--batch-tokens", "512", "--skip-bad-lines",
    )  # fmt: skip
    assert (out, resume) == ("run", False)
    assert layers == (
        {},
        {},
        {
            "preset": "g2p_small",
            "init": None,
            "data": {"train": ["a.en", "a.de"], "valid": ["v.tsv"], "skip_bad_lines": True},
            "training": {"seed": 7, "precision": "mixed_bfloat16", "batch_tokens": 512},
        },
    )


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        (["--epochs", "3"], {"epochs": 3}),
        (["--steps", "500"], {"steps": 500}),
        (["--steps", "500", "--epochs", "3"], {"epochs": 3, "steps": 500}),
        (["--max-minutes", "1.5"], {"max_minutes": 1.5}),
        (
            ["--set", "training.steps=500", "--set", "training.epochs=3"],
            {"epochs": 3, "steps": 500},
        ),
    ],
)
def test_the_end_is_a_setting_of_the_training(called, arguments, ends):
    _, layers, _ = called(*arguments)
    assert [layer for layer in layers if layer] == [{"training": ends}]


def test_file_then_set_then_options(called, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("training: {seed: 1, epsilon: 1.0e-8}\n")
    _, layers, resume = called(
        "--config", config, "--set", "training.seed=2", "--set", "metrics=[bleu, chrf]",
        "--set", "tokenizers.source.kind=symbols", "--seed", "3", "--resume",
    )  # fmt: skip
    assert resume
    assert layers == (
        {"training": {"seed": 1, "epsilon": 1e-8}},
        {
            "training": {"seed": 2},
            "metrics": ["bleu", "chrf"],
            "tokenizers": {"source": {"kind": "symbols"}},
        },
        {"training": {"seed": 3}},
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "seed"], "--set takes NAME=VALUE, such as training.seed=3. Received: seed"),
        (["--set", "training.=3"], "--set takes NAME=VALUE"),
        (["--set", "training.seed=[3"], "--set training.seed=[3: the value is not valid YAML"),
        (["--set", "training={seed: 1, seed: 3}"], "line 1 has the duplicate key 'seed'"),
        (["--config", "."], "error: .: expected a regular file."),
        (["--set", "training.sead=3"], "Did you mean `seed`? Received: sead=3."),
        (["--set", "traning.seed=3"], "Did you mean 'training'? Received: section='traning'."),
        (["--config", "none.yaml"], "There is no such file of settings: none.yaml."),
        (["--precision", "float8"], "`precision` must be one of 'float32'"),
        (["--preset", "g2p_smal"], "Did you mean 'g2p_small'? Received: preset='g2p_smal'."),
        (["--data", "none.tsv"], "none.tsv: no such file."),
        (["--workers", "a:1,b:2"], "--workers and --worker-index belong together."),
        (
            ["--workers", "a:1,b:2", "--worker-index", "0"],
            "--workers and TF_CONFIG must name the same workers, or one of them none. Received: ",
        ),
    ],
)
def test_mistakes_take_one_line(keras_attn, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    cluster = {"cluster": {"worker": ["c:3"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    defaults = ["--preset", "g2p_small"] if "--preset" not in arguments else []
    defaults += ["--data", "cmudict"] if "--data" not in arguments else []
    assert message in keras_attn.refusal("train", "--out", "run", *defaults, *arguments)


def test_from_a_file_to_a_task(keras_attn, tmp_path):
    data, run = tmp_path / "pairs.tsv", tmp_path / "run"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    # Determinism would hold for the rest of this process, and rule out XLA in later tests.
    small = [
        "training.deterministic=false",
        "training.schedule=constant", "training.warmup_steps=1", "training.validate_every=1",
        "model.num_layers=1", "model.hidden_dim=8", "model.intermediate_dim=11", "decoding.beams=1",
    ]  # fmt: skip
    arguments = ["--preset", "g2p_small", "--data", data, "--valid", data, "--steps", "2"]
    for setting in small:
        arguments += ["--set", setting]
    output = keras_attn.output("train", "--out", run, *arguments)
    assert "6 pairs" in output
    settings = yaml.safe_load((run / "run.yaml").read_text())
    assert settings["training"]["steps"] == 2
    assert settings["model"]["hidden_dim"] == 8

    assert keras_attn.output("report", run) == f"{run / 'report.html'}\n"
    picture = tmp_path / "curves.png"
    keras_attn.output("report", run, "--picture", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    error = keras_attn.refusal("report", run, "--picture", tmp_path / "curves.pdf")
    assert "takes FILE.png or FILE.svg" in error
    nowhere = tmp_path / "missing" / "curves.svg"
    error = keras_attn.refusal("report", run, "--picture", nowhere)
    assert error.endswith(f": The folder of a file must exist. Received: '{nowhere}'.\n")

    output = keras_attn.output("predict", run, "abc", "fade")
    assert output.count("\n") == 2

    assert keras_attn.output("average", run, "--last", "2") == f"{run / 'average-2'}\n"
    assert keras_attn("predict", run / "average-2", "abc")[0] == 0
    error = keras_attn.refusal("average", run, "--last", "5")
    assert "`--last` must not exceed" in error
    assert "last=5, kept=2." in error

    error = keras_attn.refusal("train", "--out", run, *arguments)
    expected = "must be empty, or the run in it resumed (`resume=True`, `--resume`). "
    assert f"{expected}Received: '{run}'" in error
    assert expected in keras_attn.refusal("train", "--out", run)
    output = keras_attn.output("train", "--out", run, "--resume", "--steps", "3")
    assert "Resuming from" in output
    assert "step 2" in output


def test_help_names_every_mechanism():
    from keras_attn.cli import train
    from keras_attn.layers.attention.registry import ATTENTION

    named = train.__doc__.partition("mechanism: ")[2].partition(".")[0].replace(" or ", ", ")
    assert {name.strip() for name in named.split(",")} == set(ATTENTION)
