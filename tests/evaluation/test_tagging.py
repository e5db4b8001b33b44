"""Tags and spans, by cases worked out by hand after CoNLL's definition."""

import pytest

from keras_attn import evaluation
from keras_attn.validation import UserError
from tests.refusals import refused


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-A I-A O B-B", [(0, 2, "A"), (3, 4, "B")]),
        ("B-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("I-A I-A O I-B", [(0, 2, "A"), (3, 4, "B")]),
        ("O I-A B-A", [(1, 2, "A"), (2, 3, "A")]),
        ("B-A-1 I-A-1 I-A", [(0, 2, "A-1"), (2, 3, "A")]),
        ("NN VB NN", [(0, 1, "NN"), (1, 2, "VB"), (2, 3, "NN")]),
        ("B-A NN I-A", [(0, 1, "A"), (1, 2, "NN"), (2, 3, "A")]),
        ("B I- I", [(0, 1, "B"), (1, 2, "I-"), (2, 3, "I")]),
        ("O-A", [(0, 1, "O-A")]),
    ],
)
def test_spans(tags, spans):
    assert sorted(evaluation.tagged_spans(tags.split())) == spans


FOUND = ["B-P I-P O B-L O", "O B-P", "B-L I-L"]
RIGHT = ["B-P I-P O B-P O", "O O", "B-L I-P"]


def rows(texts):
    return [text.split() for text in texts]


def test_counted_by_hand():
    """Right: P at 0 to 2. Predicted beside it: L, P, L. To be found beside it: P, L, P."""
    assert evaluation.span_precision(rows(FOUND), rows(RIGHT)) == pytest.approx(100 / 4)
    assert evaluation.span_recall(rows(FOUND), rows(RIGHT)) == pytest.approx(100 / 4)
    assert evaluation.span_f1(rows(FOUND), rows(RIGHT)) == pytest.approx(100 / 4)
    assert evaluation.tag_accuracy(rows(FOUND), rows(RIGHT)) == pytest.approx(100 * 6 / 9)


def test_precision_and_recall_are_not_mixed_up():
    found, right = rows(["B-P O O O"]), rows(["B-P B-P B-P O"])
    values = {name: metric(found, right) for name, metric in evaluation.TAGGING.items()}
    expected = {"tag_accuracy": 50, "span_f1": 50, "span_precision": 100, "span_recall": 100 / 3}
    assert values == pytest.approx(expected)


def test_of_parts_of_speech_every_word_is_a_span():
    found, right = rows(["NN VB NN", "DT"]), rows(["NN NN NN", "DT"])
    assert {metric(found, right) for metric in evaluation.TAGGING.values()} == {75.0}


def test_nothing_to_be_found():
    found, right = rows(["O O"]), rows(["O O"])
    values = {name: metric(found, right) for name, metric in evaluation.TAGGING.items()}
    assert values == {"tag_accuracy": 100, "span_f1": 0, "span_precision": 0, "span_recall": 0}


@pytest.mark.parametrize("metric", evaluation.TAGGING)
def test_mistakes(metric):
    refused(
        "one right tag. Received: predicted=1, right=2",
        evaluation.TAGGING[metric],
        [["O"]],
        [["O", "O"]],
    )
    with pytest.raises(UserError, match="one right tag. Received: predicted=2, right=2"):
        evaluation.TAGGING[metric]([["O"], ["O"]], [["O", "O"]])
    refused("must not be empty. Received: words=0", evaluation.TAGGING[metric], [[]], [[]])
