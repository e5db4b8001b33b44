"""Tags of words: the model's own probabilities, saved, exported, told what is wrong."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import Pairs
from keras_attn.export import CppSavedModel, export_saved_model
from keras_attn.models import Bert, TokenClassifier
from keras_attn.tasks import (
    ExportedTokenClassification,
    TokenClassificationTask,
    measure_tags,
    open_exported,
)
from keras_attn.tasks.token_classification import UNTAGGED
from keras_attn.tokenizers import WordPieceTokenizer, train_tokenizer
from keras_attn.validation import UserError
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import assert_alike, reloaded

pytestmark = pytest.mark.tensorflow

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", ".", "'"]
LABELS = ["O", "B-X", "I-X"]
TEXTS = ["The  cats sat.", "", "cats", "dog \u200b cat's\tthe the cats", " sat ", "cats 日 the"]
IDS = {  # by hand, with the place of each word's first piece
    "The  cats sat.": ([2, 5, 6, 7, 8, 9, 3], [1, 2, 4]),
    "": ([2, 3], []),
    "cats": ([2, 6, 7, 3], [1]),
    "dog \u200b cat's\tthe the cats": ([2, 1, 1, 6, 10, 1, 5, 5, 6, 7, 3], [1, 2, 3, 6, 7, 8]),
    " sat ": ([2, 8, 3], [1]),
    "cats 日 the": ([2, 6, 7, 1, 5, 3], [1, 3, 4]),
}


def make_task(labels=LABELS, max_length=11, columns=3, seed=10, truncate=False):
    encoder = Bert(13, 1, 10, 2, 17, max_length=13, pooler=False)
    model = spread_weights(TokenClassifier(encoder, columns), seed)
    tokenizer = WordPieceTokenizer(TOKENS, True)
    return TokenClassificationTask(model, tokenizer, labels, max_length, truncate)


@pytest.fixture(scope="module")
def task():
    return make_task()


def word_scores(task, text):
    """Log-probabilities of the tags of a text's words by itself, (words, tags)."""
    ids, firsts = IDS[text]
    logits = np.asarray(task.backbone({"token_ids": np.array([ids], "int32")}))[0][firsts]
    logits = logits.astype("float64")
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_tags_are_read_at_the_first_piece_of_each_word(task):
    ids = task.input_ids(tf.constant(TEXTS)).numpy()
    assert [row[row != 0].tolist() for row in ids] == [IDS[text][0] for text in TEXTS]
    chosen = [[LABELS[place] for place in word_scores(task, text).argmax(1)] for text in TEXTS]
    assert len({tag for row in chosen for tag in row}) == 3
    assert task.predict(TEXTS) == [" ".join(row) for row in chosen]
    assert task.predict([]) == []


def test_scores_are_summed_over_words(task):
    best = [row[0] for row in task.predict_n_best(TEXTS, 1)]
    expected = [word_scores(task, text).max(axis=1, initial=-9).sum() for text in TEXTS]
    np.testing.assert_allclose([h.log_probability for h in best], expected, atol=1e-4)
    assert [h.score for h in best] == [h.log_probability for h in best]
    np.testing.assert_allclose(task.score(TEXTS, [h.text for h in best]), expected, atol=1e-4)
    tags = ["B-X I-X  O", "", "I-X", "O O O B-X I-X I-X", "O", "B-X\tB-X B-X"]
    expected = [
        sum(word_scores(task, text)[at, LABELS.index(tag)] for at, tag in enumerate(row.split()))
        for text, row in zip(TEXTS, tags, strict=True)
    ]
    np.testing.assert_allclose(task.score(TEXTS, tags), expected, atol=1e-4)


def test_loss_of_labelled_tokens_alone(task):
    logits = tf.math.log([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]])
    loss, nll, count, correct = task.loss(tf.constant([[1, 0, 2]]), logits)
    assert float(loss) == pytest.approx(-np.log(0.5) - np.log(0.3))
    assert (float(nll), float(count), float(correct)) == (float(loss), 2, 1)


@pytest.mark.slow
def test_saved_and_exported(task, tmp_path):
    loaded = reloaded(task, tmp_path / "task")
    assert loaded.predict_n_best(TEXTS, 1) == task.predict_n_best(TEXTS, 1)
    folder = export_saved_model(task, tmp_path / "exported")
    exported = open_exported(folder)
    assert type(exported) is ExportedTokenClassification
    assert exported.predict(TEXTS) == task.predict(TEXTS)
    assert_alike(exported.predict_n_best(TEXTS, 1), task.predict_n_best(TEXTS, 1), atol=1e-4)
    with pytest.raises(UserError, match="at most 9 tokens. Received: 10 tokens in 'the the"):
        exported.predict(["cats", "the " * 10])
    refused("Every word has one tag. Received: n_best=2", exported.predict_n_best, ["cats"], 2)
    with CppSavedModel(folder) as model:
        outputs = model.run("serving_default", {"text": TEXTS})
        ids = task.input_ids(tf.constant(TEXTS)).numpy()
        probabilities = model.run("token_ids", {"token_ids": ids})["probabilities"]
    assert [text.decode() for text in outputs["tags"]] == task.predict(TEXTS)
    assert {name: array.shape for name, array in outputs.items()} == {
        "tags": (6,),
        "log_probability": (6,),
        "words": (6, 6),
        "word_tags": (6, 6),
        "probabilities": (6, 6),
    }
    for row, text in enumerate(TEXTS):
        scores, words = word_scores(task, text), text.encode().split()
        count = len(words)
        assert outputs["words"][row].tolist() == words + [b""] * (6 - count)
        tags = [LABELS[place].encode() for place in scores.argmax(1)]
        assert outputs["word_tags"][row].tolist() == tags + [b""] * (6 - count)
        found = outputs["probabilities"][row]
        np.testing.assert_allclose(np.log(found[:count]), scores.max(1, initial=-9), atol=1e-4)
        assert (found[count:] == 0).all()
        np.testing.assert_allclose(
            np.log(probabilities[row][IDS[text][1]]), scores, atol=1e-4, err_msg=text
        )


def test_measured_on_every_row(task):
    texts = ["cats", "the", "cats"]
    first, second = task.predict(["cats", "the"])
    wrong = next(label for label in LABELS if label != first)
    pairs = Pairs(texts, [first, second, wrong], "made")
    found = measure_tags(task, pairs, ["tag_accuracy"])
    assert found == {"items": 3, "tag_accuracy": pytest.approx(100 * 2 / 3)}
    refused("Received: metric='bleu'", measure_tags, task, pairs, ["bleu"])


def test_example_texts_fit(task):
    for one in (task, make_task(max_length=3)):
        texts = one.example_texts()
        assert any(text for text in texts)
        assert max(one.token_counts(texts)) <= one.max_length
    assert max(len(text.split()) for text in task.example_texts()) > 1


def test_words_of_letters():
    """A tokenizer that has no pieces within words."""
    tokenizer = train_tokenizer("characters", ["abc"])
    model = spread_weights(TokenClassifier(Bert(tokenizer.vocabulary_size, 1, 10, 2, 17), 2), 1)
    task = TokenClassificationTask(model, tokenizer, ["x", "y"], 9)
    assert task.input_ids(tf.constant(["ab c"])).numpy().tolist() == [[1, 4, 5, 6, 2]]
    assert len(task.predict(["ab c"])[0].split()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["a"], "columns": 1}, "At least two labels are needed. Received: labels=.'a'."),
        ({"labels": ["a", "b", "a"]}, "No label may be repeated. Received: labels=.'a', 'b', 'a'."),
        ({"labels": ["a", "b"]}, "must equal the number of logits. Received: labels=2, logits=3"),
        ({"labels": ["a", "b c", "d"]}, "must be one word. Received: tag='b c'"),
        ({"labels": ["a", "", "d"]}, "must be one word. Received: tag=''"),
        ({"max_length": 14}, "must not exceed .*Received: positions=13, max_length=14"),
        ({"max_length": 2}, "room for a token between start and end. Received: max_length=2"),
    ],
)
def test_mistakes_in_making_it(arguments, message):
    refused(message, make_task, **arguments)


def test_words_beyond_the_maximum_length_are_untagged(task):
    made = make_task(truncate=True)
    read = "the cats " + "the " * 6  # cats are two pieces: nine tokens fit
    long = f"{read}cats the"
    assert task.token_counts([read]) == [11]
    assert made.count_truncated([read, long]) == 1
    (found,), (of_read,) = made.predict_n_best([long])[0], task.predict_n_best([read])[0]
    assert found.text == f"{of_read.text} {UNTAGGED} {UNTAGGED}"
    np.testing.assert_allclose(found.score, of_read.score, rtol=1e-5)
    scores = made.score([long], ["O " * 10]), task.score([read], ["O " * 8])
    np.testing.assert_allclose(*scores, rtol=1e-5)
    assert made.predict([long, "cats"]) == [found.text, task.predict(["cats"])[0]]


@pytest.mark.slow
def test_words_beyond_the_maximum_length_are_untagged_when_saved_and_exported(tmp_path):
    made, texts = make_task(truncate=True), ["the cats " + "the " * 6 + "cats the", "cats"]
    expected = made.predict(texts)
    assert expected[0].endswith(f" {UNTAGGED} {UNTAGGED}")
    exported = open_exported(export_saved_model(made, tmp_path / "exported"))
    assert exported.predict(texts) == expected
    assert reloaded(made, tmp_path / "task").predict(texts) == expected


def test_mistakes_in_using_it(task):
    refused("at most 9 tokens. Received: 10 tokens in 'the the", task.predict, ["the " * 10])
    refused("Every word has one tag. Received: n_best=2", task.predict_n_best, ["cats"], 2)
    refused("without a beam search. Received: beams=2", task.predict_n_best, ["cats"], 1, beams=2)
    with pytest.raises(UserError, match="Every word must have a tag. Received: words=2, tags=1"):
        task.score(["the cats"], ["O"])
    refused("must be one of 'O', 'B-X', 'I-X'.*Received: tag='B-Y'", task.score, ["cats"], ["B-Y"])
