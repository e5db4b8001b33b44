"""Every family that generates: what its search finds is the best of all texts that there are."""

import itertools

import pytest

from keras_attn.models import Transformer
from keras_attn.tasks import CausalLMTask, DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import train_tokenizer
from tests.layers.judges import spread_weights
from tests.models import families, test_language_models

pytestmark = pytest.mark.tensorflow

LETTERS = "abcdefg"  # with the special tokens the eleven tokens of the models
KEPT, LONGEST = "abc", 4  # texts of up to three letters, and their end
SOURCES = ["face", "g", ""]
TWO_VOCABULARIES = (
    "fixed context",
    "fixed context, biased",
    "GNMT, one layer",
    "fixed random scores",
    "T5, version 1.1",
    "Marian, unlike sides",
    "wide convolutions",
)
QUICK = ("Transformer", "GPT-2")


def seq2seq(model):
    tokenizer = train_tokenizer("characters", [LETTERS])
    return Seq2SeqTask(model, tokenizer, tokenizer, decoding())


def language_model(name):
    model = test_language_models.built(**test_language_models.VARIANTS[name])
    return CausalLMTask(model, train_tokenizer("characters", [LETTERS]), decoding())


def decoding():
    others = tuple(letter for letter in LETTERS if letter not in KEPT)
    # 27 beams hold every text of three letters; one to spare.
    return DecodingSettings(beams=28, max_source_length=7, max_length=LONGEST, banned_words=others)


BLOCKS = {"num_layers": 2, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
TASKS = {
    "Transformer": lambda: seq2seq(spread_weights(Transformer(11, **BLOCKS))),
    **{
        name: lambda name=name: seq2seq(families.made(name))
        for name in families.CASES
        if name not in TWO_VOCABULARIES
    },
    **{name: lambda name=name: language_model(name) for name in test_language_models.VARIANTS},
}


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TASKS],
)
def test_a_wide_beam_finds_the_best_of_all_texts(name):
    """Steps with caches, and whole texts, which `score` reads without."""
    task = TASKS[name]()
    texts = [
        "".join(row) for size in range(LONGEST) for row in itertools.product(KEPT, repeat=size)
    ]
    assert len(texts) == 40
    pairs = list(itertools.product(SOURCES, texts))
    scores = dict(zip(pairs, task.score(*map(list, zip(*pairs, strict=True))), strict=True))
    for source, hypotheses in zip(SOURCES, task.predict_n_best(SOURCES, 7), strict=True):

        def score(text, source=source):
            return scores[source, text] / ((5 + len(text) + 1) / 6) ** 0.6

        expected = sorted(texts, key=score, reverse=True)[:7]
        assert [hypothesis.text for hypothesis in hypotheses] == expected
        for hypothesis in hypotheses:
            log_probability = scores[source, hypothesis.text]
            assert hypothesis.log_probability == pytest.approx(log_probability, rel=1e-4)
            assert hypothesis.score == pytest.approx(score(hypothesis.text), rel=1e-4)
