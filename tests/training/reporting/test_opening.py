"""The first answers of a report, for curves made up here."""

import pytest

from keras_attn.training.reporting.opening import opening


def run(losses, training=None, name="nll"):
    training = training or losses
    return [
        {"step": str(100 * place), "nll": str(trained), f"val_{name}": str(value)}
        for place, (value, trained) in enumerate(zip(losses, training, strict=True), 1)
    ]


def answers(rows, settings=None, results=None, errors=None):
    found = opening(rows, settings or {}, results or {}, errors or {})
    return {question: (text, is_good) for question, text, is_good in found}


def test_of_equal_values_that_of_the_lower_loss_is_the_best():
    rows = run([0.5, 0.9, 0.9, 0.9, 0.7], name="accuracy")
    for row, loss in zip(rows, [1.0, 0.5, 0.3, 0.4, 0.6], strict=True):
        row["val_loss"] = str(loss)
    text, _ = answers(rows, {"metric": "accuracy"})[LEARNING]
    assert "was best after 300 updates, and 2 validations since" in text


LEARNING = "Is it still learning?"
CASES = {
    "falls": ([4.0, 3.0, 2.0], "Yes", False, "from 3 to 2"),
    "falls little": ([2.0, 1.01, 1.005], "Hardly", True, "from 1.01 to 1.005"),
    "one validation without a better one": (
        [4.0, 3.0, 3.1],
        "No",
        True,
        "after 200 updates, and 1 v",
    ),
    "three of them": ([4.0, 3.0, 3.1, 3.1, 3.1], "No", False, "200 updates, and 3 validations"),
    "equal ones": ([2.0, 2.0, 2.0], "No", True, "100 updates, and 2 validations"),
    "not a number": ([2.0, 1.0, float("nan")], "No", True, "200 updates"),
    "few": ([4.0, 3.0], "Too early", None, "2 validations"),
    "none": ([], "Too early", None, "0 validations"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_it_still_learning(case):
    losses, start, is_good, part = CASES[case]
    text, found = answers(run(losses))[LEARNING]
    assert text.startswith(start)
    assert part in text
    assert found is is_good
    assert "memorizes" not in text


def test_memorizing():
    rows = run([4.0, 2.0, 2.2], [4.0, 2.0, 1.0])
    text, is_good = answers(rows)[LEARNING]
    assert "fell from 2 to 1 nats" in text
    assert "rose from 2 to 2.2" in text
    assert is_good is False


OF_LABELS = {"metric": "exact_match", "metric_goal": "max"}
ALWAYS_A = {"baseline": {"answer": "'a', the most frequent one", "metrics": {"exact_match": 51.0}}}


def test_greater_is_better():
    rows = run([80.0, 90.0, 85.0], name="exact_match")
    found = answers(rows, OF_LABELS, {"exact_match": 88.5, "items": 1200}, ALWAYS_A)
    assert found[LEARNING][0].startswith("No: exact_match was best after 200 updates")
    text, _ = found["How good is it?"]
    assert text.startswith(
        "exact_match 88.5 on 1,200 test examples; exact_match 90 in the validation"
    )
    text, is_better = found["Against what?"]
    assert (
        "Always answering 'a', the most frequent one, gets exact_match 51 in the validation; at the"
        in text
    )
    assert is_better is True


def test_no_better_than_without_a_model():
    rows = run([51.0, 51.0, 51.0], name="exact_match")
    text, is_better = answers(rows, OF_LABELS, errors=ALWAYS_A)["Against what?"]
    assert text.startswith("It is no better than no model at all.")
    assert is_better is False


def test_a_loss_is_compared_with_its_beginning():
    text, is_better = answers(run([4.0, 3.0, 2.0]))["Against what?"]
    assert text == "At the first validation, after 100 updates, it was 4."
    assert is_better is None
