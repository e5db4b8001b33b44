"""Exact match and F1 of answers, by hand."""

import pytest

from keras_attn.evaluation import answer_exact_match, answer_f1, normalized_answer

CASES = [  # answer, references, exact match, F1
    ("Denver Broncos", ["Denver Broncos"], 100, 100),
    ("the Denver   Broncos!", ["denver broncos"], 100, 100),
    ("Broncos", ["Carolina Panthers", "Denver Broncos"], 0, 100 * 2 / 3),
    ("U.S. Army", ["US army"], 100, 100),
    ("an army of ants", ["ants", "the army"], 0, 50),
    ("cat cat", ["cat dog"], 0, 50),  # a word counts as often as both have it
    ("anthem", ["them"], 0, 0),  # articles are whole words
    ("", [], 100, 100),
    ("something", [], 0, 0),
    ("", ["something"], 0, 0),
    ("the", ["a"], 100, 100),  # nothing is left of both
]


@pytest.mark.parametrize(("answer", "references", "exact", "f1"), CASES)
def test_cases(answer, references, exact, f1):
    assert answer_exact_match(answer, references) == exact
    assert answer_f1(answer, references) == pytest.approx(f1)


def test_what_is_left_of_an_answer():
    assert normalized_answer(" The well-known A.B. (an  acronym)") == "wellknown ab acronym"
