"""Runs of embeddings: pairs to vectors, measured, resumed, exported, gone on with."""

import json

import numpy as np
import pytest

from keras_attn.cli import main
from keras_attn.convert import from_huggingface
from keras_attn.tasks import EmbeddingTask, open_task
from tests.convert.made import BERT
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embed")
    return made.trained("embedding", folder, (400, 97), hold_out=53, steps=80, validate_every=40)


@pytest.mark.slow
def test_texts_find_their_partners(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is EmbeddingTask
    assert (task.pooling, task.normalize, task.max_length) == ("mean", True, 16)
    lines = [line.split("\t") for line in (folder / "test").read_text().splitlines()]
    sources, targets = zip(*lines, strict=True)
    distinct = sorted(set(targets))
    cosines = task.predict(sources) @ task.predict(distinct).T
    own = [cosines[row, distinct.index(target)] for row, target in enumerate(targets)]
    ranks = (cosines >= np.array(own)[:, None]).sum(axis=1)
    assert results["items"] == 97
    assert results["recall_at_1"] == pytest.approx(100 * np.mean(ranks == 1))
    assert results["recall_at_10"] == pytest.approx(100 * np.mean(ranks <= 10))
    assert results["recall_at_1"] > 90
    assert results["mrr"] == pytest.approx(100 * np.mean(1 / ranks))
    state = json.loads((folder / "run" / "summary.json").read_text())
    assert state["metric"] == "mrr"
    source, partner, found = json.loads((folder / "run" / "samples.json").read_text())[-1]["texts"][
        0
    ]
    assert "".join(sorted(source)).translate(made.SCRIPT) == partner
    assert found.isdigit()


@pytest.mark.slow
def test_batches_are_not_cut_into_parts(trained):
    folder, _ = trained
    assert "cpu_shards: 1\n" in (folder / "run" / "run.yaml").read_text()


@pytest.mark.slow
def test_evaluated_exported_and_verified(trained, tmp_path, capsys):
    made.answers_of_a_run_and_its_export(trained, tmp_path, capsys)
    scored = [f"{line}\t5" for line in made.partners(9, 3)]
    scored += [f"{line.split(chr(9))[0]}\t0123\t-1.5" for line in made.partners(9, 4)]
    run, scored = trained[0] / "run", written(tmp_path / "scored.tsv", scored)
    found = made.measured(run, scored, tmp_path / "out.json")
    assert set(found) == {"items", "spearman", "pearson"}
    assert found["items"] == 18
    assert found["spearman"] > 70
    for arguments, message in (
        (["--metrics", "mrr"], "must be one of 'spearman', 'pearson'"),
        (
            ["--beams", "2"],
            "The task 'embedding' has no beams and no perplexity. Received: beams=2",
        ),
    ):
        assert message in made.refusal(capsys, "evaluate", run, "--data", scored, *arguments)


@pytest.mark.slow
def test_a_converted_bert_goes_on_learning(tmp_path):
    """The command alone: its kind is the task's, its recipe that of trained weights."""
    converted = from_huggingface(BERT)
    converted.save(tmp_path / "bert")
    nouns, verbs = ["the cat", "a dog", "the mat"], ["sat", "sat on", "on the mat"]
    lines = [f"{noun} {verb} .\t{noun} ! {verb}" for noun in nouns for verb in verbs]
    data = written(tmp_path / "pairs.tsv", lines * 60)
    command = ["train", "--init", str(tmp_path / "bert"), "--data", data, "--valid", data]
    command += ["--out", str(tmp_path / "run"), "--epochs", "1", "--batch-tokens", "128"]
    for setting in ("warmup_steps=1", "schedule=constant", "learning_rate=0.01", "metric=loss"):
        command += ["--set", f"training.{setting}"]
    assert main(command) == 0
    task = open_task(tmp_path / "run")
    assert task._settings() == converted._settings()
    rows = [line.split("\t") for line in lines]
    found = []
    for one in (converted, task):
        sources, targets = (one.predict(list(column)) for column in zip(*rows, strict=True))
        cosines = 20 * sources @ targets.T
        own = np.diag(cosines)
        found.append(np.mean(np.log(np.exp(cosines - own[:, None]).sum(axis=1))))
    assert found[1] < 0.7 * found[0]
    settings = (tmp_path / "run" / "run.yaml").read_text()
    assert "task: embedding\n" in settings
    assert "label_smoothing: 0.0\n" in settings
