import math

import pytest

from keras_attn import evaluation
from keras_attn.validation import UserError
from tests.harness import run_python
from tests.refusals import refused

HYPOTHESES = ["A B C D E", "A D"]
REFERENCES = [["A B C D E"], ["A B", "X Y Z"]]


def test_every_metric():
    assert evaluation.metric_names() == [
        *("wer", "per", "exact_match", "bleu", "bleu_tokenized", "chrf"),
        *("rouge1", "rouge2", "rougeL", "rougeLsum"),
    ]
    results = evaluation.evaluate_texts(evaluation.metric_names(), HYPOTHESES, REFERENCES)
    assert list(results) == evaluation.metric_names()
    assert results["wer"] == results["exact_match"] == 50
    assert results["per"] == pytest.approx(100 / 7)
    assert all(type(value) is float for value in results.values())
    assert 0 < results["chrf"] < 100


def test_tokenized_bleu_is_its_own():
    texts = (["a cat sat here, now."], [["a cat sat here , now ."]])
    results = evaluation.evaluate_texts(["bleu_tokenized", "bleu"], *texts)
    assert results["bleu"] == pytest.approx(100)
    assert results["bleu_tokenized"] < 50


@pytest.mark.parametrize("name", evaluation.metric_names())
def test_directions(name):
    metric = evaluation.get_metric(name)
    right = metric.function(["a b c d e"], [["a b c d e"]])
    wrong = metric.function(["v w x y z"], [["a b c d e"]])
    assert metric.is_better(right, wrong)
    assert not metric.is_better(wrong, right)
    assert not metric.is_better(right, right)
    assert metric.higher_is_better == (right > wrong)
    assert metric.direction == ("max" if right > wrong else "min")
    assert metric.is_better(wrong, None)
    assert metric.is_better(wrong, math.nan)
    assert not metric.is_better(math.nan, wrong)
    assert not metric.is_better(math.nan, None)


def test_signatures_are_those_of_a_score():
    names = ["wer", "bleu", "bleu_tokenized", "chrf"]
    references = [["a b c", "a b d"], ["e f g h"]]
    found = evaluation.metric_signatures(names, references)
    assert list(found) == names[1:]
    texts = (["a b", "e f"], references)
    assert found["bleu"] == evaluation.bleu(*texts).signature
    assert found["bleu_tokenized"] == evaluation.bleu(*texts, tokenized=True).signature
    assert found["chrf"] == evaluation.chrf(*texts).signature
    assert "tok:13a" in found["bleu"]
    assert "tok:none" in found["bleu_tokenized"]
    assert evaluation.metric_signatures(names, [["a"]])["bleu"].startswith("nrefs:1|")


def test_wrong_arguments():
    with pytest.raises(UserError, match=r"'wer', 'per'.* mean 'bleu'\? Received: metric='blue'"):
        evaluation.evaluate_texts(["per", "blue"], HYPOTHESES, REFERENCES)
    refused(
        r"`names` must be a list.*names='per'",
        evaluation.evaluate_texts,
        "per",
        HYPOTHESES,
        REFERENCES,
    )
    with pytest.raises(UserError, match=r"equal lengths. Received: hypotheses=1, references=2"):
        evaluation.evaluate_texts(["per"], HYPOTHESES[:1], REFERENCES)


def test_perplexity():
    assert evaluation.perplexity(6 * math.log(8), 6) == pytest.approx(8)
    assert evaluation.perplexity(0.0, 5) == 1
    assert evaluation.perplexity(1e9, 1) == math.inf
    assert math.isnan(evaluation.perplexity(math.nan, 3))
    refused(r"`tokens` must be positive\. Received: tokens=0\.", evaluation.perplexity, 1.0, 0)


def test_needs_no_tensorflow():
    script = (
        "import sys\n"
        "from keras_attn.evaluation import evaluate_texts\n"
        "print(evaluate_texts(['per', 'bleu', 'chrf'], ['a b'], [['a b']])['per'])\n"
        "assert not {'tensorflow', 'keras', 'jax', 'torch'} & set(sys.modules)\n"
    )
    assert run_python(script) == "0.0\n"
