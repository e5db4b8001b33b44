import sys

import pytest

from keras_attn.evaluation import evaluate_texts, rouge
from keras_attn.evaluation.summarization import _library
from tests.refusals import refused

# Every expected value is worked out by hand.
HYPOTHESIS = "police kill the gunman"


@pytest.mark.parametrize(
    ("rouge_type", "reference", "expected"),
    [
        ("rouge1", "police killed the gunman", 100.0),  # by their stems
        ("rouge1", "police ended the gunman", 75.0),
        ("rouge2", "police ended the gunman", 100 / 3),
        ("rouge2", "the gunman kill police", 100 / 3),
        ("rougeL", "police ended the gunman", 75.0),
        ("rougeL", "the gunman kill police", 50.0),
        ("rouge1", "The gunman, killing police!", 100.0),
        ("rouge1", "police", 40.0),  # precision 1/4, recall 1
        ("rouge1", "全て", 0.0),
    ],
)
def test_by_hand(rouge_type, reference, expected):
    assert rouge([HYPOTHESIS], [[reference]], rouge_type) == pytest.approx(expected)


def test_lines_are_sentences():
    """Of two sentences, each has its common subsequence; of all as one, order counts."""
    hypothesis, reference = "b c\na", "a\nb c"
    assert rouge([hypothesis], [[reference]], "rougeLsum") == pytest.approx(100)
    assert rouge([hypothesis], [[reference]], "rougeL") == pytest.approx(100 * 2 / 3)


def test_the_best_reference_of_each_and_the_mean_of_all():
    references = [["police", "police ended the gunman"], ["no word of it"]]
    assert rouge([HYPOTHESIS] * 2, references, "rouge1") == pytest.approx(75 / 2)
    names = ["rougeL", "rouge2"]
    found = evaluate_texts(names, [HYPOTHESIS] * 2, references)
    assert found == pytest.approx({"rougeL": 75 / 2, "rouge2": 100 / 6})


def test_mistakes(monkeypatch):
    refused("rouge_type", rouge, ["a"], [["a"]], "rouge9")
    refused("`hypotheses` must not be empty", rouge, [], [])
    _library.cache_clear()
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    refused(r"pip install 'keras_attn\[rouge\]'", rouge, ["a"], [["a"]])
