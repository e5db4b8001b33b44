"""Seq2SeqTask: prediction, scores, mistakes."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.models import Transformer
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import ByteLevelBpeTokenizer, train_tokenizer
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tasks.made import SIZES, TEXTS, assert_alike, make_task

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def task():
    return make_task()


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def naive_score(task, source, target):
    """The log-probability, one token after the other, straight from the model."""

    def ids(tokenizer, text):
        return [*tokenizer.tokenize(tf.constant([text]))[0].numpy().tolist(), 2]

    source_ids, labels = ids(task.source_tokenizer, source), ids(task.target_tokenizer, target)
    logits = task.backbone(
        {"source_ids": np.array([source_ids]), "target_ids": np.array([[1, *labels[:-1]]])}
    )
    rows = log_softmax(np.asarray(logits)[0].astype("float64"))
    return sum(rows[place, label] for place, label in enumerate(labels))


def test_scores_are_the_models_probabilities(task):
    targets = ["AA B", "", "CH D EH AA B CH", "D", "XX D", "B", ""]
    scores = task.score(TEXTS, targets)
    expected = [naive_score(task, *pair) for pair in zip(TEXTS, targets, strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    tokens = sum(len(target.split()) + 1 for target in targets)
    perplexity = math.exp(-sum(expected) / tokens)
    assert task.perplexity(TEXTS, targets) == pytest.approx(perplexity, rel=1e-4)


@pytest.mark.parametrize(
    "length_penalty",
    [0.6, pytest.param(0.0, marks=pytest.mark.slow), pytest.param(2.0, marks=pytest.mark.slow)],
)
def test_scores_of_hypotheses_are_those_of_their_texts(length_penalty):
    task = make_task(length_penalty=length_penalty)
    lengths = set()
    for text, hypotheses in zip(TEXTS, task.predict_n_best(TEXTS, 3), strict=True):
        assert 1 <= len(hypotheses) <= 3
        scores = task.score([text] * len(hypotheses), [h.text for h in hypotheses])
        for hypothesis, score in zip(hypotheses, scores, strict=True):
            assert hypothesis.log_probability == pytest.approx(score, rel=1e-4)
            length = len(hypothesis.text.split()) + 1
            penalty = ((5 + length) / 6) ** length_penalty
            assert hypothesis.score == pytest.approx(score / penalty, rel=1e-4)
            lengths.add(length)
        ranked = [hypothesis.score for hypothesis in hypotheses]
        assert ranked == sorted(ranked, reverse=True)
        assert len({hypothesis.text for hypothesis in hypotheses}) == len(hypotheses)
    assert len(lengths) > 1


def test_greedy_takes_the_most_probable_token_each_time(task):
    """Written out with the whole model in place of the cache."""
    for text in TEXTS[:4]:
        source_ids = task.input_ids(tf.constant([text])).numpy()
        tokens = [1]
        while tokens[-1] != 2:
            inputs = {"source_ids": source_ids, "target_ids": np.array([tokens])}
            logits = np.asarray(task.backbone(inputs))[0, -1].copy()
            logits[[0, 1, 3]] = -np.inf
            tokens.append(2 if len(tokens) == 7 else int(logits.argmax()))
        expected = " ".join(task.target_tokenizer.id_to_token(token) for token in tokens[1:-1])
        assert task.predict([text], beams=1) == [expected]


def test_wide_beams_find_what_is_at_least_as_probable():
    task = make_task(length_penalty=0.0)
    greedy = task.predict_n_best(TEXTS, 1, beams=1)
    wide = task.predict_n_best(TEXTS, 1, beams=5)
    for narrow_row, wide_row in zip(greedy, wide, strict=True):
        assert wide_row[0].score >= narrow_row[0].score - 1e-5


def test_a_text_is_treated_alike_in_any_company(task):
    together = task.predict_n_best(TEXTS, 3)
    backwards = task.predict_n_best(TEXTS[::-1], 3)[::-1]
    alone = [task.predict_n_best([text], 3)[0] for text in TEXTS]
    many = task.predict_n_best(TEXTS * 29, 3)
    for other in (backwards, alone, many[: len(TEXTS)], many[-len(TEXTS) :]):
        assert_alike(together, other, rtol=1e-4)
    assert task.predict(TEXTS) == [hypotheses[0].text for hypotheses in together]


def test_progress_counts_every_text(task):
    seen = []
    task.predict_n_best(TEXTS * 301, 1, progress=seen.append)
    assert len(seen) > 1
    assert sum(seen) == len(TEXTS) * 301


def test_no_texts(task):
    assert task.predict([]) == []
    assert task.predict_n_best([], 2) == []
    assert task.score([], []) == []
    assert task.perplexity([], []) == 1


def test_the_shortest_length_is_kept():
    task = make_task(min_length=4)
    for hypotheses in task.predict_n_best(TEXTS, 3):
        assert all(4 <= len(h.text.split()) + 1 <= 7 for h in hypotheses)
    assert task.predict(TEXTS, beams=1) != [""] * len(TEXTS)


def test_only_room_for_the_end():
    assert make_task(max_length=1).predict(["abc"]) == [""]


def test_malformed_bytes_are_read_not_crashed_on(task):
    functions = task.serving_functions(2)
    texts = tf.constant([b"ab\xffc", b"\xc3", b"abc"])
    outputs = functions["serving_default"].function(text=texts)
    assert outputs["text"].shape == (3,)
    known = functions["serving_default"].function(text=tf.constant(["ab\ufffdc", "\ufffd", "abc"]))
    np.testing.assert_array_equal(outputs["text"], known["text"])
    scores = functions["score"].function(text=texts, target=tf.constant([b"AA", b"\xff", b""]))
    assert np.isfinite(scores["log_probability"]).all()


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_serving_functions_agree_with_the_task(task, jit):
    functions = task.serving_functions(2, jit=jit)
    texts = tf.constant(TEXTS)
    best = functions["serving_default"].function(text=texts)
    assert [text.decode() for text in best["text"].numpy()] == task.predict(TEXTS)
    several = functions["n_best"].function(text=texts)
    assert several["text"].shape == (len(TEXTS), 2)
    np.testing.assert_array_equal(several["text"][:, 0], best["text"])
    np.testing.assert_allclose(several["score"][:, 0], best["score"], rtol=1e-4)
    ids = functions["token_ids"].function(**functions["token_ids"].example_inputs(TEXTS))
    found = task.target_tokenizer.detokenize(ids["token_ids"])
    np.testing.assert_array_equal(found, best["text"])
    ids = functions["n_best_token_ids"].function(**functions["token_ids"].example_inputs(TEXTS))
    for row, texts_of_row in enumerate(several["text"].numpy()):
        found = task.target_tokenizer.detokenize(ids["token_ids"][row])
        np.testing.assert_array_equal(found, texts_of_row)
    np.testing.assert_allclose(ids["score"], several["score"], rtol=1e-4)
    inputs = functions["score_token_ids"].example_inputs(TEXTS)
    targets = task.target_tokenizer.detokenize(inputs["target_ids"]).numpy()
    scores = functions["score_token_ids"].function(**inputs)
    expected = task.score(TEXTS, [target.decode() for target in targets])
    np.testing.assert_allclose(scores["log_probability"], expected, rtol=1e-4)
    assert scores["length"].numpy().tolist() == [len(target.split()) + 1 for target in targets]


LONG = "abcdefgabcdefgabcdefgabcdefgabcdefgabcdefgabcdefg"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda task: task.predict(["a", "abcdefgabcd"]),
            "A source text must have at most 10 tokens. Received: 11 tokens in 'abcdefgabcd'.",
        ),
        (lambda task: task.predict([LONG]), f"Received: 49 tokens in {LONG[:40] + '…'!r}."),
        (
            lambda task: task.score(["a"], ["AA AA AA AA AA AA AA"]),
            "A target text must have at most 6 tokens. Received: 7 tokens in 'AA AA AA AA AA",
        ),
        (lambda task: task.score([LONG], ["AA"]), "A source text must have at most 10 tokens."),
        (
            lambda task: task.predict_n_best(["a"], 4),
            "`n_best` must not exceed `beams`. Received: n_best=4, beams=3.",
        ),
        (
            lambda task: task.predict_n_best([], 3, beams=2),
            "`n_best` must not exceed `beams`. Received: n_best=3, beams=2.",
        ),
        (
            lambda task: task.serving_functions(4),
            "`n_best` must not exceed `beams`. Received: n_best=4, beams=3.",
        ),
        (
            lambda task: task.predict_n_best(["a"], 0),
            "`n_best` must be a positive integer. Received: n_best=0.",
        ),
        (
            lambda task: task.predict(["a"], beams=0),
            "`beams` must be a positive integer. Received: beams=0.",
        ),
        (
            lambda task: task.predict("abc"),
            "`texts` must be several texts, not one. Received: 'abc'.",
        ),
        (lambda task: task.predict(["a", 5]), "`texts[1]` must be Unicode text. Received: text=5."),
        (
            lambda task: task.predict(["\udcff"]),
            "`texts[0]` must be Unicode text. Received: text='\\udcff'.",
        ),
        (
            lambda task: task.score(["a", "b"], ["AA"]),
            "Every source must have one target. Received: sources=2, targets=1.",
        ),
        (
            lambda task: task.perplexity(["a"], ["AA", "B"]),
            "Every source must have one target. Received: sources=1, targets=2.",
        ),
    ],
)
def test_mistakes(task, call, message):
    with pytest.raises(UserError) as caught:
        call(task)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_with_fewer_positions_than_asked_for():
    message = "must not exceed the model's positions. Received: positions=9, max_source_length=11"
    refused(message, make_task, model={"learned_positions": 9})
    task = make_task(model={"learned_positions": 11})
    assert len(task.predict(["abcdefgabc"])) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beams": 0}, "`beams` must be a positive integer. Received: beams=0."),
        ({"max_length": 2.5}, "`max_length` must be a positive integer. Received: max_length=2.5."),
        ({"min_length": 9, "max_length": 7}, "Received: min_length=9, max_length=7."),
        ({"min_length": "few"}, "Received: min_length='few', max_length=256."),
        ({"length_penalty": -1}, "Received: length_penalty=-1."),
        ({"length_penalty": "long"}, "Received: length_penalty='long'."),
    ],
)
def test_mistakes_in_decoding_settings(settings, message):
    refused(message, DecodingSettings, **settings)


def test_decoding_settings_are_replaced_by_name():
    settings = DecodingSettings(beams=5)
    assert settings.replace(beams=None) == settings
    assert settings.replace(beams=2, min_length=3) == DecodingSettings(beams=2, min_length=3)
    refused("Did you mean 'beams'\\? Received: setting='beam'", settings.replace, beam=2)


@pytest.mark.parametrize("kind", ["word_piece", "byte_level_bpe"])
def test_tokenizers_of_bert_and_gpt2(kind):
    texts = ["ab cd abcd", "bad dab"] * 3
    tokenizer = train_tokenizer(kind, texts, vocabulary_size=283)
    backbone = Transformer(tokenizer.vocabulary_size, **SIZES)
    settings = DecodingSettings(beams=2, max_length=7, max_source_length=11)
    task = Seq2SeqTask(backbone, tokenizer, tokenizer, settings)
    assert all(task.example_texts())
    assert len(task.predict(texts)) == len(texts)
    for row, text in zip(task.input_ids(tf.constant(texts)).numpy(), texts, strict=True):
        (ids,) = tokenizer.tokenize([text]).to_list()
        padding = [0] * (len(row) - len(ids) - 1)
        assert row.tolist() == [*ids, tokenizer.end_id, *padding]


def test_a_tokenizer_must_pad_with_zero_and_know_an_end():
    special = ["<|endoftext|>"] * 4
    tokenizer = ByteLevelBpeTokenizer.train(["ab"], vocabulary_size=257, special_tokens=special)
    backbone = Transformer(tokenizer.vocabulary_size, **SIZES)
    refused(r"have another end id.*pad_id=0, end_id=0", Seq2SeqTask, backbone, tokenizer, tokenizer)


def test_targets_without_tokens_are_scored(task):
    functions = task.serving_functions(1)
    ids = {"source_ids": [[5, 6]], "target_ids": np.zeros((1, 0))}
    found = functions["score_token_ids"].function(
        **{name: tf.constant(value, tf.int32) for name, value in ids.items()}
    )
    assert found["log_probability"].numpy().tolist() == [0.0]
    nothing = tf.constant([], tf.string)
    found = functions["score"].function(text=nothing, target=nothing)
    assert found["log_probability"].shape == (0,)
