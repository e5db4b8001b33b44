"""The table of every task: its commands are run as they stand there, on tiny data."""

import base64
import csv
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from keras_attn.export.golden import read_golden
from keras_attn.models import get_preset
from keras_attn.tasks import Task
from keras_attn.training.task_runs import TASK_RUNS
from tests.data.test_images import of, png

pytestmark = pytest.mark.tensorflow

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/pages/guides/tasks.md"
ITEMS = 20
WORDS = ["Anna", "Rome", "A", "dog", "good", "film", "lives", "in", "runs.", "Once", "upon", "."]
SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
# Determinism would hold for the rest of this process, and rule out XLA in later tests.
TRAINING = {"steps": 2, "validate_every": 2, "average_last": 0, "deterministic": "false"}
GENERATING = {"beams": 1, "max_source_length": 32, "max_length": 8}
# What they export is verified in the default suite too, by the tests of these tasks.


def section():
    return PAGE.read_text(encoding="utf-8")


def table():
    """By task: what goes in, the preset, and the command line that trains it."""
    rows = [line.strip("| ").split(" | ") for line in section().splitlines() if line[:3] == "| `"]
    cells = [[re.sub("^`([^`]*)`.*", r"\1", cell) for cell in row] for row in rows]
    return {task: (goes_in, preset, command) for task, goes_in, _, preset, command in cells}


TABLE = table()


def commands(task, data):
    """The command lines that are the same for all, by their first words."""
    (block,) = re.findall(r"^```\n(.*?)^```", section(), re.M | re.S)
    words = {"TASK": task, "DATA": data, "INPUT": shlex.quote(TABLE[task][0])}
    filled = re.sub("|".join(words), lambda word: words[word[0]], block)
    return {words[1]: words[1:] for words in map(shlex.split, filled.splitlines())}


def smaller(task):
    settings = {f"model.{name}": value for name, value in SIZES.items()}
    settings |= {f"training.{name}": value for name, value in TRAINING.items()}
    if task in ("seq2seq", "causal_lm", "span_corruption"):
        settings |= {f"decoding.{name}": value for name, value in GENERATING.items()}
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the table names, in the current folder."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    texts = [" ".join(draw.choice(WORDS, draw.integers(3, 6))) for _ in range(ITEMS)]
    assert len(set(texts)) == ITEMS
    contents = {
        "pairs.tsv": [f"{text}\t{text.upper()}" for text in texts],
        "labels.tsv": [f"{text}\t{'good' if 'good' in text else 'bad'}" for text in texts],
        "topics.jsonl": [
            json.dumps({"text": text, "labels": [word for word in ("good", "A") if word in text]})
            for text in texts
        ],
        "numbers.tsv": [f"{text}\t{len(text)}" for text in texts],
        "ranks.tsv": [
            f"{text}\t{other}\t{int(other == text.upper())}"
            for text in texts
            for other in (text.upper(), texts[0])
        ],
        "answers.tsv": [
            f"{text.split()[-1]}?\t{number} {text}\t{number}" for number, text in enumerate(texts)
        ],
        "tags.tsv": [f"{text}\t{re.sub('[^ ]+', 'O', text)}" for text in texts],
        "texts.txt": texts,
    }
    contents["tags.tsv"][0] = "Anna lives in Rome .\tB-PER O O B-LOC O"
    days = np.arange("2024-01", "2025-01", dtype="datetime64[D]")
    sales = np.sin(np.arange(len(days)) * 2 * np.pi / 7) + draw.normal(size=len(days)) / 9
    contents["sales.csv"] = [
        "date,sales",
        *(f"{d},{s:.3f}" for d, s in zip(days, sales, strict=True)),
    ]
    for name, lines in contents.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for number in range(ITEMS):
        folder = tmp_path / "images" / ("odd" if number % 2 else "even")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.png").write_bytes(png(of(draw.integers(0, 255, (8, 8)))))
    (tmp_path / "scan.png").write_bytes((folder / f"{number}.png").read_bytes())


def served_answer(keras_attn, command, task, content):
    """What a server that the command starts answers to one request, before it is told to end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    body, answers, ended = json.dumps(content).encode(), [], threading.Event()

    def ask():
        while not ended.wait(0.02):
            try:
                url = f"http://127.0.0.1:{port}/v1/models/{task}:predict"
                with urllib.request.urlopen(url, body, 60) as answer:
                    answers.append(json.loads(answer.read()))
            except urllib.error.HTTPError as error:
                with error:
                    answers.append(error.read())
            except urllib.error.URLError:
                continue  # it does not listen yet
            os.kill(os.getpid(), signal.SIGTERM)  # which a server that listens takes
            return

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        # With XLA, for it is switched off for the whole process and for good.
        status, _, error = keras_attn(*command, "--rest-port", port, "--grpc-port", 0, "--xla")
    finally:
        ended.set()
        thread.join()
    assert status == 0, error
    ((prediction,),) = (answer["predictions"] for answer in answers)
    return prediction


def test_the_table_has_every_task():
    assert set(TABLE) == set(TASK_RUNS)
    for task, (_, preset, command) in TABLE.items():
        assert f"--task {task} --preset {preset} --data " in command
        preset = get_preset(preset)
        assert task in preset.tasks
    steps = ["evaluate", "predict", "visualize", "export", "verify", "serve"]
    assert list(commands("token_classification", "tags.tsv")) == steps


@pytest.mark.slow
@pytest.mark.parametrize("task", TABLE)
def test_the_commands_of_a_task(task, files, keras_attn, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")  # which `serve` would set
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "1")
    goes_in, _, command = TABLE[task]
    train = shlex.split(command)[1:]
    command = commands(task, train[train.index("--data") + 1])

    def called(words):
        output = keras_attn.output(*words)
        return output.rstrip("\n")

    called([*train, *smaller(task)])
    items = "30" if task == "forecast" else str(ITEMS)  # windows of a week in the last 36 days
    measured = " ".join(called(command["evaluate"]).split())
    assert f"{TASK_RUNS[task].items} {items} " in measured
    predicted = called(command["predict"])
    called(command["visualize"])
    assert (tmp_path / f"{task}.html").read_text().startswith("<!DOCTYPE html>")
    version = called(command["export"])
    checks = called(command["verify"])
    assert checks.splitlines()[0] == f"{pathlib.Path(version).resolve()}: verified"
    assert "XLA disabled" in checks
    signatures = {name for name, _, _ in read_golden(pathlib.Path(version)).examples}
    assert signatures == set(Task.load(f"runs/{task}/task").serving_functions(n_best=1))

    content = goes_in
    if task == "image_classification":
        content = {"b64": base64.b64encode(pathlib.Path(goes_in).read_bytes()).decode()}
    if task == "forecast":
        rows = pathlib.Path(goes_in).read_text().splitlines()[1:]
        content = {"past": [[float(row.split(",")[1])] for row in rows]}
    if task == "rank":
        content = dict(zip(("query", "passage"), goes_in.split("\t"), strict=True))
    if task == "question_answering":
        content = dict(zip(("question", "context"), goes_in.split("\t"), strict=True))
    answer = served_answer(keras_attn, command["serve"], task, {"instances": [content]})
    if task == "forecast":
        (first, *_) = list(csv.DictReader(predicted.splitlines()))
        assert first["time"] == "2025-01-01"
        assert answer["median"][0][0] == pytest.approx(float(first["q0.5"]), rel=1e-4)
    elif task == "embedding":
        np.testing.assert_allclose(answer, json.loads(predicted), atol=1e-5)
    elif task == "regression":
        assert f"{answer[0]:g}" == predicted
    elif task == "rank":
        assert f"1\t{answer:.4f}\t{content['passage']}" == predicted
    elif task == "question_answering":
        assert answer["answer"] == predicted
    elif task == "multi_label_classification":
        chosen = zip(answer["labels"], answer["predicted"], strict=True)
        assert [label for label, is_chosen in chosen if is_chosen] == json.loads(predicted)
    else:
        told = next(answer[name] for name in ("text", "label", "tags") if name in answer)
        assert told == predicted
