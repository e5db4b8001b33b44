import json
import subprocess
import threading
import time

import pytest
import yaml

from keras_attn.benchmarks import arena
from keras_attn.benchmarks.arena import run_arena
from keras_attn.benchmarks.arena.results import Sweep, arena_table, draw_arena, sweeps_of
from keras_attn.files import wait_for_writer
from keras_attn.layers import LinearAttention
from keras_attn.layers.attention.registry import ATTENTION
from keras_attn.processes import python_command, python_environment
from keras_attn.tasks import open_task
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow

FIGURES = [
    {"task": "listops", "mechanism": "dense", "metric": "accuracy", "value": 31.0, "majority": 17.5,
     "steps": 9, "seconds": 12.4, "memory_mb": 2000.0, "probes": {}},
    {"task": "listops", "mechanism": "linear", "error": "no memory"},
    {"task": "recall:pairs=4", "mechanism": "dense", "metric": "tag_accuracy", "value": 99.94,
     "majority": None, "steps": 9, "seconds": 7.0, "memory_mb": 1500.0, "probes": {}},
    {"task": "recall:pairs=8", "mechanism": "dense", "metric": "tag_accuracy", "value": 80.0,
     "majority": None, "steps": 9, "seconds": 7.0, "memory_mb": 1500.0, "probes": {}},
]  # fmt: skip


def test_the_table():
    assert arena_table(FIGURES).splitlines() == [
        "| mechanism | listops | recall:pairs=4 | recall:pairs=8 |",
        "|---|---|---|---|",
        "| most frequent | 17.5 |  |  |",
        "| dense | 31.0, 12 s, 2,000 MB | 99.9, 7 s, 1,500 MB | 80.0, 7 s, 1,500 MB |",
        "| linear | failed |  |  |",
    ]


PROBED = FIGURES[2] | {"probes": {"recall:pairs=2,length=16": 9.0, "recall:length=8,pairs=2": 5.0}}


def test_what_runs_were_also_measured_on():
    assert arena_table([PROBED]).splitlines()[2] == ("| dense | 99.9, 7 s, 1,500 MB | 9.0 | 5.0 |")
    by_length = {"recall:pairs=2,length=16": 16, "recall:length=8,pairs=2": 8}
    assert sweeps_of([PROBED]) == [Sweep("length", "recall, pairs 2", by_length)]


def test_the_picture(tmp_path):
    for number, figures in enumerate((FIGURES, FIGURES[:2], FIGURES[2:], [PROBED])):
        path = tmp_path / f"{number}.png"
        draw_arena(figures, path)
        assert path.read_bytes().startswith(b"\x89PNG")
    measured = [figure for figure in FIGURES if "error" not in figure]
    by_pairs = {"recall:pairs=4": 4, "recall:pairs=8": 8}
    assert sweeps_of(measured) == [Sweep("pairs", "recall", by_pairs)]


def test_seconds_of_a_pretraining_in_the_table():
    after = FIGURES[0] | {"pretraining": {"seconds": 90.6}}
    assert arena_table([after]).splitlines()[3] == "| dense | 31.0, 91 + 12 s, 2,000 MB |"


def test_mistakes_before_anything_is_trained(tmp_path):
    refused("`task` must be one of.*task='lists'", lambda: list(run_arena(tmp_path, ["lists"])))
    refused("bytes reads files: name those to train", lambda: list(run_arena(tmp_path, ["bytes"])))
    files = {"train": [__file__]}
    message = "bytes reads files: name those to test on with --test-files"
    refused(message, lambda: list(run_arena(tmp_path, ["bytes"], files=files)))
    message = "The task recall is causal, and the mechanism is not.*linformer"
    refused(message, lambda: list(run_arena(tmp_path, ["recall"], ["dense", "linformer"])))
    message = "pathfinder:seed=1,validation=0 has no texts for validation"
    refused(message, lambda: list(run_arena(tmp_path, ["pathfinder:seed=1,validation=0"])))
    message = "`pairs` must be at most a quarter of `length`"
    refused(message, lambda: list(run_arena(tmp_path, ["recall:pairs=40,length=32"])))
    for probe in ("recall:pairs=20,length=32", "recall:foo=3", "recall:values=0", "listops"):
        refused(
            "pairs=20|foo|values=0|'listops'",
            lambda given=probe: list(run_arena(tmp_path, ["recall"], probes=[given])),
        )
    for arguments in ((["listops", "listops"],), (["listops"], ["dense", "dense"])):
        message = "Each needs to be named once"
        refused(message, lambda given=arguments: list(run_arena(tmp_path, *given)))
    files = {"train": [__file__]}
    refused("No task reads files", lambda: list(run_arena(tmp_path, ["listops"], files=files)))
    columns = {"data": {"columns": {"text": "body"}}}
    message = "bytes needs a column for each of text, label.*columns={'text': 'body'}"
    files = {"train": [__file__], "test": [__file__]}
    refused(message, lambda: list(run_arena(tmp_path, ["bytes"], files=files, settings=columns)))
    message = "The task recall has no pre-training. Received: pretrain_steps=3"
    refused(message, lambda: list(run_arena(tmp_path, ["recall"], pretrain_steps=3)))
    message = "`pretrain_steps` must be a positive integer. Received: pretrain_steps=0"
    refused(message, lambda: list(run_arena(tmp_path, ["listops"], pretrain_steps=0)))
    message = "`mechanism` must be one of .*mechanism='longfromer'"
    refused(message, lambda: list(run_arena(tmp_path, ["listops"], ["dense", "longfromer"])))
    message = r"Received: data='listops:max_lenght=24'\."
    refused(message, lambda: list(run_arena(tmp_path, ["listops:max_lenght=24"])))
    settings = {"modle": {"hidden_dim": 3}}
    refused("modle", lambda: list(run_arena(tmp_path, ["listops"], settings=settings)))
    files = {"train": [__file__], "test": [str(tmp_path / "missing.tsv")]}
    refused("missing.tsv", lambda: list(run_arena(tmp_path, ["bytes"], files=files)))
    for attention in ("local", {"name": "local"}):
        settings = {"attention": attention}
        message = "The mechanisms of an arena are those of --mechanisms"
        refused(
            message, lambda given=settings: list(run_arena(tmp_path, ["recall"], settings=given))
        )
    assert not list(tmp_path.iterdir())


def test_mechanisms_are_in_the_registry():
    assert set(arena.MECHANISMS) | set(arena.CAUSAL_MECHANISMS) <= set(ATTENTION)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arena")


def run(folder, lines, **options):
    task = "recall:length=8,pairs=2,values=4,train=64,validation=8,test=8"
    options = {"mechanisms": ["linear"], "steps": 2} | options
    return list(run_arena(folder, [task], **options, watch=lines.append))


@pytest.mark.slow
def test_a_run_and_nothing_the_second_time(folder):
    lines = []
    (figure,) = run(folder, lines)
    assert figure["mechanism"] == "linear"
    assert figure["steps"] == 2
    assert 0 <= figure["value"] <= 100
    assert len(lines) == 2
    settings = yaml.safe_load((next(folder.glob("*/linear")) / "run.yaml").read_text())
    assert settings["attention"] == {"name": "linear"}
    assert run(folder, lines) == [figure]
    assert len(lines) == 2
    probe = "recall:length=4,pairs=1,values=4,test=5"
    (probed,) = run(folder, lines, probes=[probe])
    assert probed == figure | {"probes": {probe: probed["probes"][probe]}}
    assert probed["probes"][probe] in (0, 20, 40, 60, 80, 100)
    assert run(folder, lines, probes=[probe]) == [probed]
    assert run(folder, lines) == [figure]
    assert len(lines) == 3


def test_a_run_with_other_settings_is_no_result(folder):
    run(folder, [])
    message = (
        "has a run with other settings: name another --out, or delete it. Received: "
        "before={'training.steps': 2, 'model.dropout': None}, "
        "now={'training.steps': 3, 'model.dropout': 0.5}"
    )
    settings = {"model": {"dropout": 0.5}}
    refused(message, lambda: run(folder, [], steps=3, settings=settings))


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """An arena with a pre-training, its lines and its figures."""
    folder, lines = tmp_path_factory.mktemp("pretrained"), []
    return folder, lines, *run_pretrained(folder, lines)


def run_pretrained(folder, lines, **options):
    task = "listops:min_length=4,max_length=12,train=64,validation=8,test=8"
    options = {"mechanisms": ["linear"], "steps": 2, "pretrain_steps": 3} | options
    settings = {"model": {"num_layers": 1}}
    return list(run_arena(folder, [task], **options, settings=settings, watch=lines.append))


@pytest.mark.slow
def test_a_run_after_a_pretraining(pretrained):
    folder, lines, figure = pretrained
    assert (figure["mechanism"], figure["metric"], figure["steps"]) == ("linear", "accuracy", 2)
    before = figure["pretraining"]
    assert (before["metric"], before["steps"]) == ("perplexity", 3)
    assert 1 < before["value"] < 1_000
    assert before["seconds"] > 0
    masked, after = (next(folder.glob(f"*/linear_{part}")) for part in ("masked_3", "after_3"))
    settings = yaml.safe_load((masked / "run.yaml").read_text())
    assert (settings["task"], settings["attention"]) == ("masked_lm", {"name": "linear"})
    settings = yaml.safe_load((after / "run.yaml").read_text())
    assert (settings["task"], settings["init"]) == ("classification", str(masked))
    assert open_task(after).backbone.pooling == "first"
    encoder = open_task(after).backbone.encoder
    assert type(encoder.get_layer("block_0").attention) is LinearAttention
    assert [line.count("masked tokens") for line in lines] == [1, 1, 0, 0]
    assert run_pretrained(folder, lines) == [figure]
    assert len(lines) == 4


@pytest.mark.slow
def test_a_killed_benchmark_leaves_no_training(tmp_path):
    task = "listops:max_length=16,train=64,validation=8,test=8"
    arguments = ("--out", str(tmp_path), "--tasks", task, "--mechanisms", "linear")
    command = python_command("keras_attn", "benchmark", "arena", *arguments, "--steps", "1000000")
    with subprocess.Popen(command, env=python_environment()) as benchmark:
        while not (begun := list(tmp_path.glob("*/linear/metrics.csv"))):
            assert benchmark.poll() is None
            time.sleep(0.1)
        benchmark.kill()
    waiting = threading.Thread(target=wait_for_writer, args=(begun[0].parent, str), daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()


@pytest.mark.slow
def test_a_run_that_fails_is_named(folder):
    (figure,) = run(folder, [], mechanisms=["gated_linear"], settings={"model": {"num_heads": 3}})
    assert "`num_heads` must divide" in figure["error"]
    assert json.dumps(figure)
