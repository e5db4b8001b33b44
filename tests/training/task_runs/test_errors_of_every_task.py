"""`evaluate --errors` of every task: the worst first, from one prediction."""

import csv
import itertools
import math
from collections import Counter

import numpy as np
import pytest

from keras_attn.data import load_digits
from keras_attn.training.measuring import evaluate
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.task_runs import TASK_RUNS
from tests.export.test_matrix import MATRIX
from tests.written import written

pytestmark = pytest.mark.tensorflow

TEXTS = ["the cat sat .", "the cats sat", "the mat", "cat"]
PAIRS = [f"{text}\t{text[4:] or 'sat'}" for text in TEXTS]
LABELS, SETS = ["good", "fair", "good", "fair"], ["fair", "fair|good", "", "good"]
# By the task: a key of MATRIX, and the lines of a file.
CASES = {
    "seq2seq": ("Transformer", ["ab\tAA B", "cab\tK AA B", "dad\tD AA D"]),
    "classification": (
        "TransformerEncoder",
        [f"{text}\t{label}" for text, label in zip(TEXTS, LABELS, strict=True)],
    ),
    "multi_label_classification": (
        "TransformerEncoder",
        [f"{text}\t{labels}" for text, labels in zip(TEXTS, SETS, strict=True)],
    ),
    "regression": ("TransformerEncoder", [f"{text}\t{len(text)}" for text in TEXTS]),
    "rank": ("Bert", [f"{pair}\t{row % 2}" for row, pair in enumerate(PAIRS + PAIRS[::-1])]),
    "image_classification": ("PatchEncoder", None),
    "token_classification": ("Bert", ["the cat sat\tgood good fair", "mat\tfair", "cat\tgood"]),
    "embedding": ("Bert", PAIRS),
    "causal_lm": ("CausalTransformer", ["aab", "cab", "abcabcabc"]),
    "masked_lm": ("Bert", TEXTS),
}


LONG = ("causal_lm", "embedding", "masked_lm")


def measured(task, tmp_path, lines=None, **options):
    """The task, its results and the rows of the file of errors."""
    family, usual = CASES[task]
    model = MATRIX[f"{task} {family}"]()
    data = ["digits"]
    if lines or usual:
        data = [written(tmp_path / "data.tsv", lines or usual)]
    path = tmp_path / "errors.csv"
    results = evaluate(model, DataSettings(data, **options), errors=path)
    return model, results, list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=pytest.mark.slow) if task in LONG else task for task in CASES],
)
def test_the_worst_come_first(task, tmp_path, monkeypatch):
    calls = Counter()
    run = type(TASK_RUNS[task])
    answers = run.answers

    def counted(self, *arguments, **options):
        calls[task] += 1
        return answers(self, *arguments, **options)

    monkeypatch.setattr(run, "answers", counted)
    separator = {"label_separator": "|"} if task == "multi_label_classification" else {}
    _, results, rows = measured(task, tmp_path, **separator)
    assert calls == {task: 1}
    errors = [float(row["error"]) for row in rows]
    assert errors == sorted(errors, reverse=True)
    assert 0 < len(rows) <= results["items"]
    if task == "image_classification":
        assert len(rows) == round(results["items"] * (1 - results["accuracy"] / 100))
        assert results["items"] == len(load_digits()["test"])
    else:
        inputs = [line.split("\t")[0] for line in CASES[task][1]]
        assert {row["input"] for row in rows} <= set(inputs)


def test_losses_of_language_models_are_those_of_their_texts(tmp_path):
    model, results, rows = measured("causal_lm", tmp_path)
    texts = CASES["causal_lm"][1]
    expected = {text: -model.score([""], [text])[0] / (len(text) + 1) for text in texts[:2]}
    found = {row["input"]: float(row["error"]) for row in rows}
    assert {text: found[text] for text in expected} == pytest.approx(expected, abs=1e-3)
    tokens = np.array([len(text) + 1 for text in texts])
    mean = np.dot([found[text] for text in texts], tokens) / tokens.sum()
    assert results["perplexity"] == pytest.approx(math.exp(mean), rel=1e-3)


def test_masked_tokens_are_shown(tmp_path):
    model, results, rows = measured("masked_lm", tmp_path)
    correct = [row["correct"].split() for row in rows]
    predicted = [row["predicted"].split() for row in rows]
    assert all(len(a) == len(b) > 0 for a, b in zip(correct, predicted, strict=True))
    words = zip(itertools.chain(*correct), itertools.chain(*predicted), strict=True)
    right = [expected == found for expected, found in words]
    assert results["accuracy"] == pytest.approx(100 * np.mean(right))
    assert {word for words in correct for word in words} <= set(model.tokenizer.vocabulary)


def test_partners_that_are_not_found(tmp_path):
    model, _, rows = measured("embedding", tmp_path)
    targets = [line.split("\t")[1] for line in PAIRS]
    vectors, cosines = model.predict(targets), {}
    for source, target in (line.split("\t") for line in PAIRS):
        found = vectors @ model.predict([source])[0]
        rank = 1 + sum(found[place] >= found[targets.index(target)] for place in range(4)) - 1
        others = [place for place in np.argsort(-found) if targets[place] != target]
        if rank > 1:
            cosines[source] = (1 - 1 / rank, targets[others[0]])
    got = {row["input"]: (float(row["error"]), row["predicted"]) for row in rows}
    assert got == {
        text: (pytest.approx(error, abs=1e-3), near) for text, (error, near) in cosines.items()
    }


def test_scores_by_their_order(tmp_path):
    lines = [f"{line}\t{score}" for line, score in zip(PAIRS, [4, 3, 2, 1], strict=True)]
    model, _, rows = measured("embedding", tmp_path, lines)
    pairs = [line.split("\t") for line in PAIRS]
    cosines = [float(np.dot(*model.predict(pair))) for pair in pairs]
    ranks = np.argsort(np.argsort(cosines)) + 1
    expected = {
        f"{a} / {b}": abs(rank - score) / 4
        for (a, b), rank, score in zip(pairs, ranks, [4, 3, 2, 1], strict=True)
        if rank != score
    }
    assert {row["input"]: float(row["error"]) for row in rows} == pytest.approx(expected)


@pytest.mark.parametrize("task", ["classification", "token_classification"])
def test_every_row_of_a_repeated_text_is_judged(task, tmp_path):
    """The mislabeled ones are those one looks for."""
    labels = ["good", "fair", "good"] if task == "classification" else ["good", "fair", "fair"]
    _, results, rows = measured(task, tmp_path, [f"mat\t{label}" for label in labels])
    predicted = {row["predicted"] for row in rows}
    assert (results["items"], len(predicted)) == (3, 1)
    assert len(rows) == sum(label not in predicted for label in labels) > 0
    assert {row["correct"] for row in rows}.isdisjoint(predicted)
