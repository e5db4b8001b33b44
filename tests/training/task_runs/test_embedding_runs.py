"""Runs of embeddings: pairs to vectors, measured, resumed, exported, gone on with."""

import json

import numpy as np
import pytest

from keras_attn.cli import main
from keras_attn.convert import from_huggingface
from keras_attn.tasks import EmbeddingTask, open_task
from keras_attn.training import run as job
from keras_attn.validation import UserError
from tests.convert.made import BERT

pytestmark = pytest.mark.tensorflow

SIZES = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32, "dropout": 0.0}
TRAINING = {
    "batch_tokens": 256,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 3,
    "jit": "off",
}


def pairs(count, seed):
    """Words, and the same letters in another script and in another order."""
    generator = np.random.default_rng(seed)
    words = ["".join(generator.choice(list("abcdefghij"), 6)) for _ in range(count)]
    return [f"{word}\t{''.join(sorted(word)).translate(SCRIPT)}" for word in words]


SCRIPT = str.maketrans("abcdefghij", "0123456789")


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embed")
    data = {
        part: written(folder / f"{part}.tsv", pairs(count, seed))
        for part, count, seed in (("train", 400, 1), ("test", 97, 2))
    }
    layer = {"preset": "encoder_tiny", "task": "embed", "data": data | {"hold_out": 53}}
    layer |= {"model": SIZES | {"pooling": "mean"}}
    layer["training"] = TRAINING | {"steps": 80, "validate_every": 40}
    return folder, job.train(folder / "run", layer)


def test_texts_find_their_partners(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is EmbeddingTask
    assert (task.pooling, task.normalize, task.max_length) == ("mean", True, 16)
    lines = [line.split("\t") for line in (folder / "test.tsv").read_text().splitlines()]
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
    assert "".join(sorted(source)).translate(SCRIPT) == partner
    assert found.isdigit()


def test_batches_are_not_cut_into_parts(trained):
    folder, _ = trained
    assert "cpu_shards: 1\n" in (folder / "run" / "run.yaml").read_text()


@pytest.mark.slow
def test_evaluated_exported_and_verified(trained, tmp_path, capsys):
    folder, results = trained
    run, exported, test = str(folder / "run"), str(tmp_path / "exported"), str(folder / "test.tsv")
    assert main(["export", run, exported]) == 0
    assert main(["verify", exported]) == 0
    for model in (run, exported):
        out = tmp_path / "out.json"
        assert main(["evaluate", model, "--data", test, "--json", str(out)]) == 0
        assert json.loads(out.read_text()) == pytest.approx(results)
    scored = [f"{line}\t5" for line in pairs(9, 3)]
    scored += [f"{line.split(chr(9))[0]}\t0123\t-1.5" for line in pairs(9, 4)]
    scored = written(tmp_path / "scored.tsv", scored)
    assert main(["evaluate", run, "--data", scored, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert set(found) == {"items", "spearman", "pearson"}
    assert found["items"] == 18
    assert found["spearman"] > 70
    capsys.readouterr()
    for arguments, message in (
        (["--metrics", "mrr"], "must be one of 'spearman', 'pearson'"),
        (["--beam", "2"], "The task 'embed' has no beams and no perplexity. Received: beams=2"),
    ):
        assert main(["evaluate", run, "--data", scored, *arguments]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_alike(trained, tmp_path):
    layer = {"init": str(trained[0] / "run"), "data": {"train": str(trained[0] / "test.tsv")}}
    layer["training"] = TRAINING | {"epochs": 2}
    job.train(tmp_path / "whole", layer)
    job.train(tmp_path / "halves", layer | {"training": layer["training"] | {"epochs": 1}})
    job.train(tmp_path / "halves", {"training": {"epochs": 2}}, resume=True)
    tables = [(tmp_path / name / "metrics.csv").read_text() for name in ("whole", "halves")]
    assert tables[0] == tables[1]
    assert "val_mrr" in tables[0]


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
    assert "task: embed\n" in settings
    assert "label_smoothing: 0.0\n" in settings


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"metrics": ["bleu"]}, "must be one of 'mrr', 'recall_at_1', .*Received: metric='bleu'"),
        ({"decoding": {"beams": 2}}, "The task .embed. has no `decoding`"),
        ({"training": {"consistency": 1.0}}, "which an embedding does not have. .*consistency=1.0"),
        ({"training": {"cpu_shards": 2}}, "needs whole batches. Received: cpu_shards=2"),
        ({"model": {"pooling": "sum"}}, "`pooling` must be one of"),
        ({"preset": "lm_tiny"}, "one for this task.*task='embed', tasks_of_preset=.'lm'"),
        ({"data": {"max_source_length": 2}}, "room for a token .*max_length=2"),
    ],
)
def test_mistakes(layer, message, trained, tmp_path):
    data = {"train": str(trained[0] / "train.tsv")} | layer.get("data", {})
    base = {"preset": "encoder_tiny", "task": "embed"}
    with pytest.raises(UserError, match=message):
        job.train(tmp_path / "run", base | layer | {"data": data})
