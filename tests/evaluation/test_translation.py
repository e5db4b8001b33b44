"""BLEU and chrF against values worked out from their definitions."""

import math
from collections import Counter

import pytest

from keras_attn.evaluation import bleu, chrf

HYPOTHESES = ["the cat sat on the mat .", "there is a small dog in the garden"]
REFERENCES = [
    ["the cat sat on a mat .", "a cat sat on the mat ."],
    ["there is a dog in the big garden"],
]


def ngrams(tokens, order):
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


def naive_bleu(hypotheses, references):
    """Papineni et al. 2002, equations of section 2, without smoothing."""
    right, all_ = [0] * 4, [0] * 4
    length = reference_length = 0
    for hypothesis, alternatives in zip(hypotheses, references, strict=True):
        tokens, rows = hypothesis.split(), [row.split() for row in alternatives]
        length += len(tokens)
        reference_length += min((abs(len(row) - len(tokens)), len(row)) for row in rows)[1]
        for order in range(1, 5):
            found = ngrams(tokens, order)
            allowed = Counter()
            for row in rows:
                allowed |= ngrams(row, order)
            right[order - 1] += sum((found & allowed).values())
            all_[order - 1] += sum(found.values())
    precision = math.exp(sum(math.log(r / a) for r, a in zip(right, all_, strict=True)) / 4)
    return 100 * min(1, math.exp(1 - reference_length / length)) * precision


def naive_chrf(hypothesis, reference):
    """Popović 2015: mean precision and recall of character 1- to 6-grams, beta 2."""
    scores = []
    for order in range(1, 7):
        found, right = (ngrams(text.replace(" ", ""), order) for text in (hypothesis, reference))
        both = sum((found & right).values())
        scores.append((both / sum(found.values()), both / sum(right.values())))
    precision, recall = (sum(column) / 6 for column in zip(*scores, strict=True))
    return 100 * 5 * precision * recall / (4 * precision + recall)


def test_bleu_with_alternatives_of_differing_number():
    result = bleu(HYPOTHESES, REFERENCES, tokenized=True)
    assert result.score == pytest.approx(naive_bleu(HYPOTHESES, REFERENCES))
    assert 30 < result.score < 90
    assert "nrefs:var" in result.signature
    assert "tok:none" in result.signature
    assert "version:" in result.signature


def test_the_second_alternative_counts():
    only_first = [row[:1] for row in REFERENCES]
    assert bleu(HYPOTHESES, REFERENCES).score > bleu(HYPOTHESES, only_first).score


def test_the_order_of_rows_and_alternatives_does_not_matter():
    references = [list(reversed(row)) for row in reversed(REFERENCES)]
    turned = bleu(HYPOTHESES[::-1], references)
    assert turned.score == pytest.approx(bleu(HYPOTHESES, REFERENCES).score)


def test_brevity():
    hypotheses, references = ["a b c d e"], [["a b c d e f g"]]
    # All n-grams are right; only the brevity penalty exp(1 - 7/5) is left.
    assert bleu(hypotheses, references).score == pytest.approx(100 * math.exp(-0.4))


def test_tokenized_or_not():
    hypotheses, references = ["a cat sat here, now."], [["a cat sat here , now ."]]
    plain = bleu(hypotheses, references)
    assert plain.score == pytest.approx(100)
    assert "tok:13a" in plain.signature
    assert bleu(hypotheses, references, tokenized=True).score < 50


def test_lowercase():
    hypotheses, references = ["The Cat Sat On It"], [["the cat sat on it"]]
    assert bleu(hypotheses, references, lowercase=True).score == pytest.approx(100)
    assert "case:lc" in bleu(hypotheses, references, lowercase=True).signature
    assert bleu(hypotheses, references).score < 1
    assert chrf(hypotheses, references, lowercase=True).score == pytest.approx(100)
    assert chrf(hypotheses, references).score < 60


def test_chrf():
    result = chrf(HYPOTHESES[:1], [REFERENCES[0][:1]])
    assert result.score == pytest.approx(naive_chrf(HYPOTHESES[0], REFERENCES[0][0]))
    assert "nc:6|nw:0" in result.signature
    better = chrf(HYPOTHESES[:1], [["x", HYPOTHESES[0], "y"]])
    assert better.score == pytest.approx(100)


def test_tokenized_text_prints_no_warning(caplog):
    bleu(["a b c d ."] * 200, [["a b c d ."]] * 200)
    assert caplog.records == []


def test_empty_texts():
    assert bleu([""], [["a b c d"]]).score == 0
    assert bleu(["a"], [[""]]).score == 0
    assert chrf(["", "a b"], [[""], ["a b"]]).score == pytest.approx(100)
