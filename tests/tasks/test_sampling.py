"""Drawing texts, constraints in words, and both through saving, exporting and the settings."""

import collections
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.export import export_saved_model, verify
from keras_attn.tasks import DecodingSettings, Task, open_exported
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tasks import made
from tests.tasks.test_causal_lm import LONGEST, PROMPTS, log_probabilities
from tests.tasks.test_causal_lm import make_task as make_language_model

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def language_model():
    return make_language_model()


@pytest.fixture(scope="module")
def task():
    return made.make_task()


def texts(found):
    return [[hypothesis.text for hypothesis in hypotheses] for hypotheses in found]


def test_samples_are_those_of_the_seed_the_text_and_its_number(task):
    sources = ["abc", "fedcba", "a", "abc", "gfedcba"]
    found = task.sample(sources, samples=5, seed=3)
    assert task.sample(sources, samples=5, seed=3) == found
    assert task.sample(sources, samples=5, seed=4) != found
    assert texts(found)[0] != texts(found)[3]
    assert len({text for row in texts(found) for text in row}) > 9
    for number, source in enumerate(sources):
        alone = task.sample([source], samples=2, seed=3, first_number=number)
        assert texts(alone)[0] == texts(found)[number][:2]


def test_samples_are_scored_as_the_model_scores_them(task):
    found = task.sample(["abc"], samples=11, seed=2, temperature=1.5, top_p=0.9)[0]
    again = task.score(["abc"] * len(found), [hypothesis.text for hypothesis in found])
    np.testing.assert_allclose(
        [hypothesis.log_probability for hypothesis in found], again, rtol=1e-4
    )


@pytest.mark.slow
def test_the_most_probable_sample_is_greedy_search(task, language_model):
    for one, inputs in ((task, made.TEXTS), (language_model, PROMPTS)):
        drawn = texts(one.sample(inputs, top_k=1, seed=5))
        assert [row[0] for row in drawn] == one.predict(inputs, beams=1)


def test_first_letters_come_as_often_as_the_model_says(language_model):
    tokenizer, count, temperature = language_model.tokenizer, 1009, 0.7
    found = language_model.sample(["ab"], samples=count, temperature=temperature, seed=1)
    firsts = collections.Counter(row.text[:1] for row in found[0])
    (ids,) = tokenizer.tokenize(["ab"]).to_list()
    logits = log_probabilities(language_model, [tokenizer.start_id, *ids])[-1].copy()
    logits[[0, tokenizer.start_id, tokenizer.unknown_id]] = -np.inf
    chances = np.exp(logits / temperature)
    chances /= chances.sum()
    for token in range(4, tokenizer.vocabulary_size):
        spread = np.sqrt(chances[token] * (1 - chances[token]) / count)
        found = firsts[tokenizer.id_to_token(token)] / count
        assert abs(found - chances[token]) < 4.5 * spread


@pytest.mark.slow
def test_a_prompt_counts_as_repeated(language_model):
    settings = {"samples": 503, "seed": 1, "max_length": 2}
    free = language_model.sample(["aaa"], **settings)
    penalized = language_model.sample(["aaa"], repetition_penalty=50.0, **settings)
    counts = [sum("a" in row.text for row in found[0]) for found in (free, penalized)]
    logits = log_probabilities(language_model, [1, 4, 4, 4])[-1]
    assert np.exp(logits[4]) > 0.05
    assert counts[0] > 20
    assert counts[1] != counts[0]


@pytest.mark.slow
def test_banned_words_and_ngrams(task):
    sources = ["abc", "fedcba", "bbbbbbbb", "a"]
    free = task.predict_n_best(sources, 3)
    words = [word for row in texts(free) for text in row for word in text.split()]
    first = collections.Counter(words).most_common()[0][0]
    ended = made.make_task(banned_words=[first])
    for row in texts(ended.predict_n_best(sources, 3)) + texts(ended.sample(sources, 7)):
        assert row
        assert all(first not in text.split() for text in row)
    free = made.make_task(min_length=5).predict_n_best(sources, 3)
    once = made.make_task(no_repeat_ngram=1, min_length=5)
    for row in texts(once.predict_n_best(sources, 3)) + texts(once.sample(sources, 7)):
        for text in row:
            assert len(set(text.split())) == len(text.split())
    assert any(len(set(text.split())) < len(text.split()) for row in texts(free) for text in row)


def test_a_prefix_begins_what_is_predicted(task):
    sources, prefixes = ["abc", "fedcba", "a"], ["B CH", "", "EH"]
    found = task.predict_n_best(sources, 3, prefixes=prefixes)
    for source, prefix, row in zip(sources, prefixes, found, strict=True):
        assert len(row) == 3
        assert all(hypothesis.text.startswith(prefix) for hypothesis in row)
        again = task.score([source] * 3, [hypothesis.text for hypothesis in row])
        np.testing.assert_allclose(again, [row.log_probability for row in row], rtol=1e-4)
    assert texts(found)[1] == texts(task.predict_n_best(["fedcba"], 3))[0]
    with pytest.raises(UserError, match="that the model can generate. Received: prefix='B X'"):
        task.predict_n_best(["a"], 1, prefixes=["B X"])
    with pytest.raises(UserError, match="A prefix must have at most 6 tokens. Received: 7 tokens"):
        task.predict_n_best(["a"], 1, prefixes=["B B B B B B B"])


def test_settings_of_a_call(task):
    given = {"beams": 2, "max_length": 3, "min_length": 2, "no_repeat_ngram": 1}
    other = task.with_decoding(**given)
    assert task.generate(made.TEXTS, **given) == other.predict(made.TEXTS)
    assert task.generate(made.TEXTS, **given) != task.predict(made.TEXTS)
    assert task.predict_n_best(["abc"], 2, **given) == other.predict_n_best(["abc"], 2)
    for name in ("temperature", "max_source_length", "max_new_tokens"):
        with pytest.raises(UserError, match=f"`setting` must be one of .*setting='{name}'"):
            task.generate(["a"], **{name: 2})
    for name in ("beams", "max_source_length", "coverage_penalty"):
        with pytest.raises(UserError, match=f"`setting` must be one of .*setting='{name}'"):
            task.sample(["a"], **{name: 2})
    with pytest.raises(UserError, match="`coverage_penalty` needs a recurrent model"):
        task.generate(["a"], coverage_penalty=0.2)


@pytest.mark.slow
def test_stopping_and_length_penalty_reach_the_search():
    sources = made.TEXTS
    plain = made.make_task(length_penalty=1.0).predict_n_best(sources, 3)
    other = made.make_task(length_penalty=1.0, length_penalty_form="length")
    for row in other.predict_n_best(sources, 3):
        for text, score, log_probability in row:
            length = len(text.split()) + 1
            np.testing.assert_allclose(score, log_probability / length, rtol=1e-5)
    early = made.make_task(length_penalty=1.0, stopping="early").predict_n_best(sources, 3)
    assert texts(early) != texts(plain)


def test_settings_are_saved_and_older_folders_load(tmp_path):
    settings = {"banned_words": ["B CH"], "no_repeat_ngram": 3, "temperature": 0.7, "top_k": 5}
    task = made.make_task(**settings, stopping="early", length_penalty_form="length", top_p=0.9)
    task.save(tmp_path / "task")
    loaded = Task.load(tmp_path / "task")
    assert loaded.decoding == task.decoding
    assert loaded.decoding.banned_words == ("B CH",)
    assert loaded.sample(["abc"], 3) == task.sample(["abc"], 3)
    path = tmp_path / "task" / "task.json"
    content = json.loads(path.read_text())
    old = ("beams", "length_penalty", "max_source_length", "max_length", "min_length")
    content["decoding"] = {name: content["decoding"][name] for name in old}
    path.write_text(json.dumps(content))
    assert Task.load(tmp_path / "task").decoding == made.make_task().decoding


@pytest.mark.slow
def test_an_exported_language_model_draws_the_same(language_model, tmp_path):
    folder = export_saved_model(language_model, tmp_path / "exported", n_best=1)
    assert verify(folder).ok
    exported = open_exported(folder)
    settings = {"temperature": 1.3, "top_k": 5, "top_p": 0.9}
    for one in ({}, settings):
        expected = texts(language_model.sample(PROMPTS, seed=2**32 - 5, first_number=9, **one))
        assert texts(exported.sample(PROMPTS, seed=2**32 - 5, first_number=9, **one)) == expected
        assert len({text for row in expected for text in row}) > 2
    message = "An export samples one text at a time. Received: samples=2."
    refused(message, exported.sample, PROMPTS, samples=2)
    message = "`setting` must be one of 'temperature', 'top_k', 'top_p'. Received: setting='beams'"
    refused(message, exported.sample, PROMPTS, beams=2)
    # The settings are one for each row, as a server has them from several requests.
    signature = exported._model.signatures["sample"]
    outputs = signature(
        text=tf.constant(["ab", "ab", "ab"]),
        seed=tf.constant([7, 8, 7], tf.int64),
        temperature=tf.constant([1.0, 1.0, 1.0]),
        top_k=tf.constant([0, 0, 1]),
        top_p=tf.constant([1.0, 1.0, 1.0]),
    )
    drawn = [text.decode() for text in outputs["text"].numpy()]
    assert drawn[0] == language_model.sample(["ab"], seed=7)[0][0].text
    assert drawn[2] == language_model.predict(["ab"])[0]
    assert outputs["log_probability"].shape == (3,)


def test_what_a_language_model_serves_draws_as_the_task_does(language_model):
    functions = language_model.serving_functions(1)
    seed = 7
    seeds = tf.constant([seed + (row << 32) for row in range(len(PROMPTS))], tf.int64)
    count = len(PROMPTS)
    expected = texts(language_model.sample(PROMPTS, seed=seed))
    drawn = functions["sample_default"].function(text=tf.constant(PROMPTS), seed=seeds)
    assert [[text.decode()] for text in drawn["text"].numpy()] == expected
    settings = {
        "temperature": tf.fill([count], 1.3),
        "top_k": tf.fill([count], 5),
        "top_p": tf.fill([count], 0.9),
    }
    prompts = tf.constant(PROMPTS)
    drawn = functions["sample"].function(text=prompts, seed=seeds, **settings)
    ids = language_model.input_ids(prompts)
    by_ids = functions["sample_token_ids"].function(text_ids=ids, seed=seeds, **settings)
    found = language_model._texts_of(ids, by_ids["token_ids"][:, None])[:, 0]
    np.testing.assert_array_equal(found, drawn["text"])
    np.testing.assert_allclose(by_ids["score"], drawn["score"], rtol=1e-4)
    assert [[text.decode()] for text in drawn["text"].numpy()] != expected


@pytest.mark.slow
def test_other_exports_do_not_draw(task, tmp_path):
    exported = open_exported(export_saved_model(task, tmp_path / "exported", n_best=1))
    refused("Only exported language models can sample", exported.sample, ["a"])


@pytest.mark.slow
def test_drawing_compiled_by_xla(language_model, tmp_path):
    folder = export_saved_model(language_model, tmp_path / "exported", jit=True, n_best=1)
    expected = language_model.sample(PROMPTS, seed=11)
    assert texts(open_exported(folder).sample(PROMPTS, seed=11)) == texts(expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"temperature": 0},
            "use greedy search instead of a temperature of 0. Received: temperature=0.",
        ),
        ({"top_k": -3}, "Received: top_k=-3."),
        ({"top_p": 2}, "Received: top_p=2."),
        ({"repetition_penalty": 0}, "Received: repetition_penalty=0."),
        ({"no_repeat_ngram": -1}, "Received: no_repeat_ngram=-1."),
        ({"coverage_penalty": -1}, "Received: coverage_penalty=-1."),
        ({"banned_words": "word"}, "a list of nonempty texts. Received: "),
        ({"banned_words": ["a", ""]}, "Received: banned_words=['a', '']."),
        ({"stopping": "late"}, "`stopping` must be one of 'exact', 'early', 'heuristic'."),
        ({"length_penalty_form": "long"}, "`length_penalty_form` must be one of 'gnmt', 'length'."),
    ],
)
def test_mistakes_in_settings(settings, message):
    with pytest.raises(UserError) as raised:
        DecodingSettings(**settings)
    assert message in str(raised.value)


def test_a_coverage_that_the_model_does_not_tell():
    refused("coverage_penalty=0.2, model='Transformer'", made.make_task, coverage_penalty=0.2)


def test_mistakes_in_sampling(task):
    refused("below 2 \\*\\* 32. Received: seed=-1", task.sample, ["a"], seed=-1)
    refused("`samples` must be a positive integer", task.sample, ["a"], samples=0)
    refused("Did you mean 'temperature'", task.sample, ["a"], temprature=0.5)


@pytest.mark.slow
def test_lengths_hold_for_samples(language_model):
    found = language_model.sample(PROMPTS, samples=31, seed=1, min_length=3)
    lengths = {len(text) for row in texts(found) for text in row}
    assert lengths == {2, 3, LONGEST - 1}
