import functools
import random

import pytest

from keras_attn.evaluation import bleu, chrf, edit_distance, phoneme_error_rate, word_error_rate
from tests.refusals import refused


def naive_distance(first, second):
    """The recursive definition."""

    @functools.cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (first[i - 1] != second[j - 1]),
        )

    return distance(len(first), len(second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        ("saturday", "sunday", 3),
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("aa", "aaa", 1),
        ("abab", "baba", 2),
        (["HH", "AH0"], ["HHAH0"], 2),
    ],
)
def test_distances_by_hand(first, second, expected):
    assert edit_distance(first, second) == expected
    assert edit_distance(second, first) == expected


def test_random_distances():
    generator = random.Random(17)
    for _ in range(2003):
        letters = "abcde"[: generator.randint(1, 5)]
        first, second = (generator.choices(letters, k=generator.randint(0, 9)) for _ in range(2))
        assert edit_distance(first, second) == naive_distance(first, second)


def test_word_error_rate_by_hand():
    hypotheses = ["A B", "A  B\n", "A", "", "a b"]
    references = [["A B"], ["X", "\tA B"], ["A B", "B A"], ["A"], ["A B"]]
    assert word_error_rate(hypotheses, references) == pytest.approx(100 * 3 / 5)
    assert word_error_rate(["A"], [["A"]]) == 0
    assert word_error_rate(["AB"], [["A B"]]) == 100


def test_phoneme_error_rate_by_hand():
    hypotheses = [
        "K AE T",  # right
        "D AO G Z",  # one error from the first of two references (3 symbols)
        "T AH",  # 1 error from both: the shorter, 1 symbol, counts
        "",  # nothing said: 2 errors of 2
    ]
    references = [["K AE T"], ["D AO G", "D AA"], ["T AH M", "T"], ["AY AY"]]
    expected = 100 * (0 + 1 + 1 + 2) / (3 + 3 + 1 + 2)
    assert phoneme_error_rate(hypotheses, references) == pytest.approx(expected)
    swapped = [list(reversed(row)) for row in references]
    assert phoneme_error_rate(hypotheses, swapped) == pytest.approx(expected)


def test_phoneme_error_rate_is_summed_not_averaged():
    # 1 error of 1 and 0 of 9: 10%, where the mean over items would be 50%.
    rate = phoneme_error_rate(["X", "A B C D E F G H I"], [["A"], ["A B C D E F G H I"]])
    assert rate == pytest.approx(10)


def test_phoneme_error_rate_can_pass_a_hundred():
    assert phoneme_error_rate(["X Y Z"], [["A"]]) == pytest.approx(300)


def test_an_empty_reference_is_a_reference():
    assert phoneme_error_rate(["", "A B"], [["", "A"], ["A B"]]) == 0
    refused(r"at least one symbol\. Received: symbols=0\.", phoneme_error_rate, ["A"], [[" "]])


def test_random_rates():
    generator = random.Random(19)

    def text():
        return " ".join(generator.choices(["P", "T", "K"], k=generator.randint(0, 7)))

    hypotheses = [text() for _ in range(307)]
    references = [[text() for _ in range(generator.randint(1, 3))] for _ in hypotheses]
    errors = symbols = wrong = 0
    for hypothesis, alternatives in zip(hypotheses, references, strict=True):
        found = tuple(hypothesis.split())
        scored = [(naive_distance(found, tuple(row.split())), row) for row in alternatives]
        least = min(errors for errors, _ in scored)
        errors += least
        symbols += min(len(row.split()) for errors, row in scored if errors == least)
        wrong += least > 0
    assert phoneme_error_rate(hypotheses, references) == pytest.approx(100 * errors / symbols)
    assert word_error_rate(hypotheses, references) == pytest.approx(100 * wrong / 307)


def test_only_ascii_whitespace_separates():
    assert word_error_rate(["A\u00a0B"], [["A B"]]) == 100
    assert word_error_rate(["A\u00a0B"], [["A\u00a0B "]]) == 0


@pytest.mark.parametrize("rate", [bleu, chrf, phoneme_error_rate, word_error_rate])
def test_wrong_arguments(rate):
    refused(r"equal lengths. Received: hypotheses=2, references=1", rate, ["a", "b"], [["a"]])
    refused(r"must not be empty. Received: items=0\.", rate, [], [])
    refused(r"`references\[1\]` .*one or more.*references=\[\]", rate, ["a", "b"], [["a"], []])
    refused(r"`references\[0\]` .*list of.*references='a'", rate, ["a"], ["a"])
    refused(r"`references\[0\]` .*references=\['a', 3\]", rate, ["a"], [["a", 3]])
    refused(r"`hypotheses\[0\]` must be a string.*hypothesis=None", rate, [None], [["a"]])
    refused(r"`hypotheses` must be a list.*hypotheses='a'", rate, "a", [["a"]])
