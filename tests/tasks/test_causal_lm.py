"""Continuing texts and scoring them, against the model called on whole sequences."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import export_saved_model
from keras_attn.models import CausalTransformer
from keras_attn.tasks import CausalLMTask, DecodingSettings, open_exported
from keras_attn.tokenizers import train_tokenizer
from tests.backends import thinned
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import reloaded

pytestmark = pytest.mark.tensorflow

PROMPTS = ["ab", "", "cabac", "d"]
LONGEST = 5


def make_task(beams=1, tokenizer=None, add_start=True, **model):
    tokenizer = tokenizer or train_tokenizer("characters", ["aaaabbbccd"])
    sizes = {"num_layers": 2, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11} | model
    backbone = spread_weights(CausalTransformer(tokenizer.vocabulary_size, **sizes), 0)
    decoding = DecodingSettings(beams=beams, max_source_length=11, max_length=LONGEST)
    return CausalLMTask(backbone, tokenizer, decoding, add_start)


@pytest.fixture(scope="module")
def task():
    return make_task()


def log_probabilities(task, ids):
    """Of every next token, (length, vocabulary), from the model on one whole sequence."""
    logits = np.asarray(task.backbone({"token_ids": np.array([ids], "int32")}))[0]
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def greedy_continuation(task, prompt):
    """Token by token, each from the whole sequence so far."""
    tokenizer = task.tokenizer
    ids = tokenizer.tokenize(tf.constant([prompt])).to_list()[0]
    if task.add_start or not ids:
        ids = [tokenizer.start_id, *ids]
    begin, total = len(ids), 0.0
    while len(ids) - begin < LONGEST:
        row = log_probabilities(task, ids)[-1].copy()
        row[[0, tokenizer.start_id, tokenizer.unknown_id]] = -np.inf
        last = len(ids) - begin == LONGEST - 1
        best = tokenizer.end_id if last else int(row.argmax())
        total += row[best]
        if best == tokenizer.end_id:
            break
        ids.append(best)
    return "".join(tokenizer.id_to_token(token) for token in ids[begin:]), total


@pytest.mark.parametrize("add_start", thinned([True, False]))
def test_continues_prompts(add_start):
    task = make_task(add_start=add_start)
    expected = [greedy_continuation(task, prompt) for prompt in PROMPTS]
    assert len({text for text, _ in expected}) > 2
    assert task.predict(PROMPTS) == [text for text, _ in expected]
    found = [best[0].log_probability for best in task.predict_n_best(PROMPTS, 1)]
    np.testing.assert_allclose(found, [total for _, total in expected], rtol=1e-4)


def test_a_search_of_several_beams_scores_what_it_found():
    task = make_task(beams=3)
    for prompt, hypotheses in zip(PROMPTS, task.predict_n_best(PROMPTS, 3), strict=True):
        assert len({hypothesis.text for hypothesis in hypotheses}) == 3
        again = task.score([prompt] * 3, [hypothesis.text for hypothesis in hypotheses])
        found = [hypothesis.log_probability for hypothesis in hypotheses]
        np.testing.assert_allclose(again, found, rtol=1e-4)


def test_scores_are_those_of_the_tokens_one_by_one(task):
    tokenizer = task.tokenizer
    a, b, c = 4, 5, 6
    rows = log_probabilities(task, [tokenizer.start_id, a, b, c])
    # "b" after "a" and the end of "abc": P(b|a) P(c|ab) P(end|abc).
    expected = rows[1, b] + rows[2, c] + rows[3, tokenizer.end_id]
    whole = rows[0, a] + expected
    np.testing.assert_allclose(task.score(["a", ""], ["bc", "abc"]), [expected, whole], rtol=1e-5)
    np.testing.assert_allclose(task.perplexity([""], ["abc"]), np.exp(-whole / 4), rtol=1e-5)


def test_scores_without_a_start(task):
    """It goes before an empty prompt alone."""
    without = make_task(add_start=False)
    a, b, c, end = 4, 5, 6, task.tokenizer.end_id
    rows = log_probabilities(without, [a, b, c])
    expected = [rows[0, b] + rows[1, c] + rows[2, end], task.score([""], ["abc"])[0]]
    np.testing.assert_allclose(without.score(["a", ""], ["bc", "abc"]), expected, rtol=1e-5)


def test_a_continuation_is_written_as_it_follows_its_prompt():
    texts = ["the cat sat on the mat", "the dog sat on the cat", "a mat on the dog"] * 5
    tokenizer = train_tokenizer("sentencepiece", texts, vocabulary_size=40)
    task = make_task(tokenizer=tokenizer)
    ids = task.input_ids(tf.constant(["the cat"]))
    words = tokenizer.tokenize(tf.constant(["the cat sat on"])).to_list()[0]
    more = words[ids.shape[1] - 1 :]
    found = task._texts_of(ids, tf.constant([[[*more, 2]]]))
    assert found.numpy().tolist() == [[b" sat on"]]


@pytest.mark.slow
def test_saved_and_exported(tmp_path):
    task = make_task(num_layers=1)
    assert reloaded(task, tmp_path / "task").predict(PROMPTS) == task.predict(PROMPTS)
    folder = export_saved_model(task, tmp_path / "exported", n_best=1)
    exported = open_exported(folder)
    assert exported.predict(PROMPTS) == task.predict(PROMPTS)
    scores = task.score(PROMPTS, ["a", "ab", "", "d"])
    np.testing.assert_allclose(exported.score(PROMPTS, ["a", "ab", "", "d"]), scores, rtol=1e-4)


@pytest.mark.slow
def test_compiled_by_xla(task, tmp_path):
    folder = export_saved_model(task, tmp_path / "exported", jit=True, n_best=1)
    assert open_exported(folder).predict(PROMPTS) == task.predict(PROMPTS)


def test_prompts_that_are_too_long(task):
    refused("A prompt must have at most 10 tokens. Received: 12", task.predict, ["abcd" * 3])


def test_positions_must_hold_prompt_and_continuation():
    refused("positions=14, max_source_length=11, max_length=5", make_task, learned_positions=14)
    assert len(make_task(learned_positions=15).predict(["a" * 10])) == 1
