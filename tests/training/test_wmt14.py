"""The paper's recipes for WMT14: their numbers, and a few steps of each by the command line."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import sacrebleu
import yaml
from safetensors.numpy import load_file

from keras_attn.data import PairExamples, TokenRows, plan_epoch
from keras_attn.models import get_preset
from keras_attn.tasks import Task
from keras_attn.tokenizers import load_tokenizer
from keras_attn.training import make_schedule
from keras_attn.training.run_settings import RunSettings
from tests.training.module_process import run_module
from tests.training.stand_in import metrics_rows

pytestmark = pytest.mark.tensorflow
NAMES = ("transformer_base", "transformer_big")
VOCABULARY = 89

# "Attention Is All You Need", sections 5.1 to 5.4, 6.1 and Table 3.
TRAINING = {
    "schedule": "transformer",
    "learning_rate": 1.0,
    "warmup_steps": 4000,
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-9,
    "label_smoothing": 0.1,
    "clip_norm": 0.0,
    "weight_decay": 0.0,
    "epochs": None,
}
LENGTH = {
    "transformer_base": {"steps": 100_000, "average_last": 5},
    "transformer_big": {"steps": 300_000, "average_last": 20},
}
SIZES = ("hidden_dim", "intermediate_dim", "num_heads", "dropout")
MODEL = {
    "transformer_base": dict(zip(SIZES, (512, 2048, 8, 0.1), strict=True)),
    "transformer_big": dict(zip(SIZES, (1024, 4096, 16, 0.3), strict=True)),
}
SECONDS_A_STEP = {"transformer_base": 0.4, "transformer_big": 1.0}
# 1 / sqrt(512 * 4000) and 1 / sqrt(1024 * 4000)
PEAK = {"transformer_base": 6.98771e-4, "transformer_big": 4.94106e-4}
DECODING = {"beams": 4, "length_penalty": 0.6}

WORDS = {
    "en": ["the", "cat", "dog", "house", "river", "hears", "likes", "small", "green"],
    "de": ["die", "katze", "hund", "haus", "fluss", "hört", "mag", "klein", "grün"],
}
# What a quick test changes of a model.
SMALL = {"num_layers": 1, "intermediate_dim": 61}
MAKE_SMALL = [part for name, size in SMALL.items() for part in ("--set", f"model.{name}={size}")]


def resolved(name):
    return RunSettings.resolve({"preset": name, "data": {"train": ["en", "de"]}})


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_are_the_papers(name):
    settings = resolved(name)
    training = settings.training.to_dict()
    expected = TRAINING | LENGTH[name]
    assert {key: training[key] for key in expected} == expected
    assert settings.decoding == DECODING
    assert settings.tokenizers == {
        "shared": True,
        "source": {"kind": "sentencepiece", "model_type": "bpe", "vocabulary_size": 37_000},
    }
    config = get_preset(name).config
    expected = MODEL[name] | {"num_layers": 6, "norm_first": False, "key_dim": 64, "value_dim": 64}
    assert config == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_learning_rate_is_the_papers(name):
    training = resolved(name).training
    hidden_dim = get_preset(name).config["hidden_dim"]
    schedule = make_schedule(
        training.schedule, training.learning_rate, training.warmup_steps, None, hidden_dim
    )
    rates = [float(schedule(number - 1)) for number in (1000, 4000, 16_000)]
    assert rates == pytest.approx([PEAK[name] / 4, PEAK[name], PEAK[name] / 2], rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_are_ten_minutes_apart(name):
    assert resolved(name).training.validate_every * SECONDS_A_STEP[name] == 600


@pytest.mark.parametrize("name", NAMES)
def test_batches_hold_about_as_many_tokens_as_the_papers(name):
    """As XLA has them, of few shapes; lengths spread as those of WMT14, 30 tokens on average."""
    rng = np.random.default_rng(3)
    source = np.clip(np.round(rng.lognormal(3.25, 0.6, 400_000)), 2, 250)
    target = np.clip(np.round(source * rng.lognormal(0.03, 0.18, len(source))), 2, 250)
    sides = (TokenRows.of_lengths(np.zeros(0, "int32"), side) for side in (source, target))
    examples = PairExamples(
        **dict(zip(("source", "target"), sides, strict=True)), indices=np.arange(len(source))
    )
    plan = plan_epoch(examples, resolved(name).training.batch_tokens, 1, static_shapes=True)
    for side in (source, target):
        assert side.sum() / len(plan) == pytest.approx(25_000, rel=0.1)


def write_pairs(folder, name, count, seed):
    """Sentences of random words, and the same in another language in reverse order."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, len(WORDS["en"]), rng.integers(2, 11)) for _ in range(count)]
    for side, step in (("en", 1), ("de", -1)):
        lines = [" ".join(WORDS[side][i] for i in row[::step]) + ".\n" for row in rows]
        (folder / f"{name}.{side}").write_text("".join(lines), encoding="utf-8")


def files(folder, name):
    return [str(folder / f"{name}.{side}") for side in ("en", "de")]


def run_commands(folder, name, *options):
    """Three steps by `train` on two devices, then `average`, `evaluate` and `predict`."""
    for part, count in (("train", 120), ("valid", 7), ("test", 5)):
        write_pairs(folder, part, count, seed=count)
    run, average = str(folder / "run"), str(folder / "run" / "average-2")
    train = ["train", "--preset", name, "--out", run, "--steps", "3", "--batch-tokens", "300"]
    for option, part in (("--data", "train"), ("--valid", "valid")):
        train += [option, *files(folder, part)]
    train += ["--strategy", "mirrored", "--set", "training.validate_every=2"]
    train += ["--set", f"tokenizers.source.vocabulary_size={VOCABULARY}", *options]
    test = files(folder, "test")
    sources = pathlib.Path(test[0]).read_text(encoding="utf-8").splitlines()
    commands = [
        train,
        ["average", run, "--last", "2"],
        ["evaluate", average, "--data", *test, "--json", str(folder / "scores.json")],
        ["predict", average, *sources],
    ]
    found, errors = run_module(
        "tests.training.commands_on_two_devices", json.dumps(commands), timeout=1800
    )
    assert [status for status, _ in found] == [0] * 4, (found, errors[-4000:])
    return [output for _, output in found]


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def finished(request, tmp_path_factory):
    """A small model of each width, all else as in the recipe, trained for three steps."""
    folder = tmp_path_factory.mktemp(request.param)
    outputs = run_commands(folder, request.param, *MAKE_SMALL)
    yield request.param, folder, outputs
    shutil.rmtree(folder)  # a big model's checkpoints are large


def test_the_whole_recipe_is_in_run_yaml(finished):
    name, folder, _ = finished
    content = yaml.safe_load((folder / "run" / "run.yaml").read_text())
    told = {"steps": 3, "batch_tokens": 300, "strategy": "mirrored", "validate_every": 2}
    found = {"jit": "off", "cpu_shards": 1, "metric_goal": "max"}
    expected = resolved(name).training.to_dict() | told | found
    assert content["training"] == expected
    assert expected["average_last"] == LENGTH[name]["average_last"]
    assert content["tokenizers"] == {
        "shared": True,
        "source": {"kind": "sentencepiece", "model_type": "bpe", "vocabulary_size": VOCABULARY},
    }
    assert DECODING.items() <= content["decoding"].items()
    assert content["metrics"] == ["bleu", "chrf"]
    assert (content["preset"], content["model"]) == (name, SMALL)


def test_the_recipe_arrives_in_the_training(finished):
    name, folder, _ = finished
    rows = metrics_rows(folder / "run")
    assert [row["step"] for row in rows] == ["2", "3"]
    for row in rows:
        expected = PEAK[name] * int(row["step"]) / 4000
        assert float(row["learning_rate"]) == pytest.approx(expected, rel=1e-5)
        # Smoothed and plain cross-entropy are one without label smoothing.
        assert abs(float(row["loss"]) - float(row["nll"])) > 1e-3
        assert {"val_bleu", "val_chrf"} <= set(row)


def test_the_recipe_arrives_in_the_task(finished):
    name, folder, _ = finished
    task = Task.load(folder / "run" / "average-2")
    config = task.backbone.get_config()
    expected = MODEL[name] | SMALL | {"norm_first": False, "vocabulary_size": VOCABULARY}
    assert {key: config[key] for key in expected} == expected
    assert config["target_vocabulary_size"] is None  # one embedding for both languages
    assert (task.decoding.beams, task.decoding.length_penalty) == (4, 0.6)
    source, target = (
        load_tokenizer(folder / "run" / "tokenizers" / s) for s in ("source", "target")
    )
    assert source.assets() == target.assets()
    letters = set("".join(source.vocabulary))
    assert {"c", "ü"} <= letters  # of both languages


def test_the_average_is_that_of_the_checkpoints(finished):
    _, folder, _ = finished
    steps = [folder / "run" / "checkpoints" / f"step-0000000{k}" for k in (2, 3)]
    first, second = (load_file(step / "state.safetensors") for step in steps)
    task = Task.load(folder / "run" / "average-2")
    kernels = {key: value for key, value in first.items() if key.startswith("model/")}
    assert len(kernels) == len(task.backbone.variables)
    moved = 0
    for key, variable in zip(sorted(kernels), task.backbone.variables, strict=True):
        if not key.endswith("seed_generator_state"):
            mean = (first[key].astype("float64") + second[key]) / 2
            np.testing.assert_allclose(variable.numpy(), mean, rtol=1e-6, atol=1e-9)
            moved += np.any(first[key] != second[key])
    assert moved > 10


def test_evaluate_says_what_sacrebleu_says_of_the_predictions(finished):
    _, folder, (_, average, evaluate, predict) = finished
    assert average.strip() == str(folder / "run" / "average-2")
    scores = json.loads((folder / "scores.json").read_text())
    assert scores["items"] == 5
    references = (folder / "test.de").read_text(encoding="utf-8").splitlines()
    predictions = predict.splitlines()
    assert len(predictions) == 5
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(predictions, [references]).score)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(predictions, [references]).score)
    shown = dict(line.split() for line in evaluate.splitlines())
    assert float(shown["chrf"]) == pytest.approx(scores["chrf"], abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "millions", "strategy"),
    # Two copies of the big model take 15 GB of memory.
    [("transformer_base", 65, "mirrored"), ("transformer_big", 213, "one")],
)
def test_a_few_steps_at_full_size(name, millions, strategy, tmp_path):
    try:
        output, *_ = run_commands(tmp_path, name, "--strategy", strategy)
    finally:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    (line,) = [line for line in output.splitlines() if "parameters" in line]
    parameters = int(line.split()[2].replace(",", ""))
    # The paper's number is that of about 41,000 tokens.
    fewer = (41_000 - VOCABULARY) * MODEL[name]["hidden_dim"]
    assert (parameters + fewer) / 1e6 == pytest.approx(millions, rel=0.03)


@pytest.mark.slow
def test_two_devices_with_xla(tmp_path):
    """What `--strategy mirrored` does where the devices are GPUs: XLA, few shapes."""
    output, *_ = run_commands(tmp_path, "transformer_base", "--jit", "on", *MAKE_SMALL)
    assert "step 3" in output
    content = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert (content["training"]["jit"], content["training"]["strategy"]) == ("on", "mirrored")
