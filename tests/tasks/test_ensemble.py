"""Ensembles of tasks: averages, settings, folders, exports, and the two commands."""

import json

import numpy as np
import pytest

import keras_attn
from keras_attn.cli import main
from keras_attn.models import Bert, SequenceClassifier, TokenClassifier, TransformerEncoder
from keras_attn.tasks import (
    ClassificationTask,
    EmbeddingTask,
    MultiLabelClassificationTask,
    RegressionTask,
    Task,
    TokenClassificationTask,
    ensemble,
)
from keras_attn.tokenizers import CharacterTokenizer
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import SIZES, TEXTS, assert_alike, make_task

pytestmark = pytest.mark.tensorflow

LETTERS = CharacterTokenizer("abc")
WORDS = ["cab", "abba", "a", "bbbbacc"]


def encoder(seed, columns, head=SequenceClassifier):
    return spread_weights(head(TransformerEncoder(7, **SIZES), columns), seed)


def classifier(seed, labels=("x", "y", "z"), **options):
    options = {"max_length": 9} | options
    return ClassificationTask(encoder(seed, 3), LETTERS, list(labels), **options)


def several(seed, thresholds):
    model = encoder(seed, 3)
    return MultiLabelClassificationTask(model, LETTERS, ["x", "y", "z"], 9, thresholds=thresholds)


def test_labels_by_averaged_probabilities(tmp_path):
    tasks = [classifier(1), classifier(2), classifier(3, max_length=8)]
    expected = np.mean([task.probabilities(WORDS) for task in tasks], axis=0)
    together = ensemble(tasks)
    assert together.max_length == 8
    np.testing.assert_allclose(together.probabilities(WORDS), expected, atol=1e-6)
    found = [tasks[0].labels[place] for place in expected.argmax(1)]
    assert together.predict(WORDS) == found
    assert len({tuple(task.predict(WORDS)) for task in tasks}) > 1, "the members must differ"
    together.save(tmp_path / "task")
    loaded = Task.load(tmp_path / "task")
    np.testing.assert_allclose(loaded.probabilities(WORDS), expected, atol=1e-6)
    exported = keras_attn.load(together.export(tmp_path / "exported"))
    assert exported.predict(WORDS) == found


@pytest.mark.slow
def test_sets_of_labels_and_numbers():
    tasks = [several(1, [0.2, 0.4, 0.6]), several(2, [0.4, 0.4, 0.4])]
    expected = np.mean([task.probabilities(WORDS) for task in tasks], axis=0)
    together = ensemble(tasks)
    np.testing.assert_allclose(together.probabilities(WORDS), expected, atol=1e-6)
    np.testing.assert_allclose(together.thresholds, [0.3, 0.4, 0.5])
    tasks = [RegressionTask(encoder(s, 2), LETTERS, ["p", "q"], [3, 4], [5, 6]) for s in (1, 2)]
    expected = np.mean([task.predict(WORDS) for task in tasks], axis=0)
    np.testing.assert_allclose(ensemble(tasks).predict(WORDS), expected, atol=1e-5)


@pytest.mark.slow
def test_tags_by_averaged_probabilities():
    models = [spread_weights(TokenClassifier(Bert(7, **SIZES), 2), seed) for seed in (1, 2)]
    tasks = [TokenClassificationTask(model, LETTERS, ["O", "N"], 16) for model in models]
    text = "cab a bcc"
    by_tags = {}
    for tags in ("O O O", "N O O", "O N O", "O O N", "N N O", "N O N", "O N N", "N N N"):
        by_tags[tags] = [np.exp(task.score([text], [tags])[0]) for task in tasks]
    # The probability of a word's tag, from those of all tags of the text.
    first = np.mean([sum(p[k] for t, p in by_tags.items() if t[0] == "N") for k in (0, 1)])
    [found] = ensemble(tasks).score([text], ["N O O"])
    [other] = ensemble([*tasks[:1]]).score([text], ["N O O"])
    assert np.exp(other) == pytest.approx(by_tags["N O O"][0], rel=1e-4)
    together = ensemble(tasks)
    totals = {tags: np.exp(together.score([text], [tags])[0]) for tags in by_tags}
    assert sum(p for tags, p in totals.items() if tags[0] == "N") == pytest.approx(first, rel=1e-4)
    assert np.exp(found) == pytest.approx(totals["N O O"], rel=1e-6)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_texts_of_equal_members_are_those_of_the_member(count):
    single = make_task(1)
    together = ensemble([make_task(1) for _ in range(count)])
    expected = single.predict_n_best(TEXTS, 3)
    assert_alike(together.predict_n_best(TEXTS, 3), expected, atol=1e-4)
    greedy = [task.predict_n_best(TEXTS, 1, beams=1) for task in (together, single)]
    assert_alike(*greedy, atol=1e-4)
    targets = [row[0].text for row in expected]
    assert together.perplexity(TEXTS, targets) == pytest.approx(single.perplexity(TEXTS, targets))


@pytest.mark.slow
def test_texts_of_different_members(tmp_path):
    tasks = [make_task(1), make_task(2, {"num_layers": 2}, max_length=6, beams=2)]
    together = ensemble(tasks)
    assert (together.decoding.max_length, together.decoding.beams) == (6, 3)
    found = together.predict_n_best(TEXTS, 2)
    # The search says of each text what scoring it says.
    for place in (0, 1):
        texts = [row[place].text for row in found]
        scores = [row[place].log_probability for row in found]
        np.testing.assert_allclose(together.score(TEXTS, texts), scores, atol=1e-4)
    seconds = [row[1].text for row in found]
    for task in (make_task(1), make_task(2, {"num_layers": 2}, max_length=6)):
        assert seconds != [row[1].text for row in task.predict_n_best(TEXTS, 2)]
    folder = together.export(tmp_path / "exported", n_best=2)
    assert_alike(keras_attn.load(folder).predict_n_best(TEXTS, 2), found, atol=1e-4)
    assert main(["verify", str(folder)]) == 0


def test_tasks_that_do_not_fit():
    refused("at least one task", ensemble, [])
    refused("of one kind.*classification.*seq2seq", ensemble, [make_task(), classifier(1)])
    refused("the same `labels`, in the same order", ensemble, [classifier(1), classifier(2, "zyx")])
    other = ClassificationTask(encoder(1, 3), CharacterTokenizer("abd"), ["x", "y", "z"], 9)
    refused("the same tokenizers", ensemble, [classifier(1), other])
    refused("the same `with_start`", ensemble, [classifier(1), classifier(2, with_start=True)])
    vectors = EmbeddingTask(Bert(7, **SIZES), LETTERS, max_length=9)
    refused("task of an ensemble.*must be one of.*embedding", ensemble, [vectors])
    task = classifier(1)
    refused("Each member must be another model", ensemble, [task, task])


def test_commands(tmp_path, capsys):
    for seed in (1, 2):
        classifier(seed).save(tmp_path / f"{seed}")
        make_task(seed).save(tmp_path / f"texts{seed}")
    (tmp_path / "data.tsv").write_text("cab\tx\nabba\ty\na\tz\n")
    together = ensemble([classifier(1), classifier(2)])
    first, second = str(tmp_path / "1"), str(tmp_path / "2")
    assert main(["predict", first, "cab", "abba", "--ensemble", second]) == 0
    assert capsys.readouterr().out.split() == together.predict(["cab", "abba"])
    out = tmp_path / "out.json"
    arguments = ["--data", str(tmp_path / "data.tsv"), "--json", str(out)]
    assert main(["evaluate", first, "--ensemble", second, *arguments]) == 0
    right = np.mean(
        [a == b for a, b in zip(together.predict(["cab", "abba", "a"]), "xyz", strict=True)]
    )
    assert json.loads(out.read_text())["accuracy"] == pytest.approx(100 * right)
    capsys.readouterr()
    texts = [str(tmp_path / f"texts{seed}") for seed in (1, 2)]
    options = ["--n-best", "2", "--beams", "4", "--ensemble", texts[1]]
    assert main(["predict", texts[0], "abc", *options]) == 0
    expected = ensemble([make_task(1), make_task(2)]).predict_n_best(["abc"], 2, beams=4)
    lines = [f"1\t{hypothesis.text}" for hypothesis in expected[0]]
    assert capsys.readouterr().out.splitlines() == lines
    assert main(["predict", first, "cab", "--ensemble", texts[0]]) == 2
    assert "The tasks of an ensemble must be of one kind" in capsys.readouterr().err
