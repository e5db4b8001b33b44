"""Classification of pairs of texts: ids, a shared length, batches, exports."""

from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import LabelledExamples, Pairs
from keras_attn.data.stored.token_rows import pair_rows
from keras_attn.export import export_saved_model
from keras_attn.models import Bert, SequenceClassifier, TransformerEncoder
from keras_attn.tasks import ClassificationTask, open_exported
from keras_attn.tokenizers import shared_lengths, train_tokenizer
from tests.backends import thinned
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import assert_alike, reloaded

pytestmark = pytest.mark.tensorflow

LABELS = ["no", "yes"]
PAIRS = ["ab\tba", "a\t", "\tcab", "abcabcab\tcccc", "aa\tbcbcbcbcbc", "abcabc\tcbacba"]
A, B, C, END, START = 4, 5, 6, 2, 1


def make_task(max_length=11, truncate=True, with_start=False, **options):
    tokenizer = train_tokenizer("characters", ["aaabbc"])
    encoder = TransformerEncoder(tokenizer.vocabulary_size, 1, 8, 2, 11)
    model = spread_weights(SequenceClassifier(encoder, 2), 3)
    options = {"pairs": True} | options
    return ClassificationTask(model, tokenizer, LABELS, max_length, with_start, truncate, **options)


@pytest.mark.parametrize("with_start", [False, True])
def test_ids_by_hand(with_start):
    task = make_task(10, with_start=with_start)
    start = [START] * with_start
    room = 8 - with_start
    # Of the last one, six and six tokens: halves of the room, the odd one for the second.
    first, second = [A, B, C, A, B, C], [C, B, A, C, B, A]
    expected = [
        [*start, A, B, END, B, A, END],
        [*start, A, END, END],
        [*start, END, C, A, B, END],
        [*start, *first[:4], END, *[C] * (room - 4), END],
        [*start, A, A, END, *[B, C, B, C, B, C][: room - 2], END],
        [*start, *first[: room // 2], END, *second[:4], END],
    ]
    ids = task.input_ids(tf.constant(PAIRS)).numpy()
    assert [[one for one in row if one] for row in ids.tolist()] == expected
    counts = [len(pair) - 1 + 2 + with_start for pair in PAIRS]
    assert task.token_counts(PAIRS) == counts
    assert task.count_truncated(PAIRS) == sum(count > 11 for count in counts)


def test_lengths_are_shared():
    """As "longest_first" of the `tokenizers` library does it."""
    sizes = np.arange(12)
    first, second = (grid.reshape(-1) for grid in np.meshgrid(sizes, sizes))
    for room in (1, 2, 7, 8):
        kept = np.stack(shared_lengths(first, second, room), axis=1).tolist()
        for pair, found in zip(zip(first, second, strict=True), kept, strict=True):
            shorter = int(pair[0] > pair[1])
            limits = [0, 0]
            limits[shorter] = min(pair)
            limits[1 - shorter] = max(min(pair), room - min(pair))
            if sum(limits) > room:
                limits[shorter], limits[1 - shorter] = room // 2, room - room // 2
            assert found == [min(one, most) for one, most in zip(pair, limits, strict=True)]


def test_two_ends_between():
    task = make_task(10, with_start=True, ends_between=2)
    expected = [
        [START, A, B, END, END, B, A, END],
        [START, A, END, END, END],
        [START, END, END, C, A, B, END],
        [START, A, B, C, END, END, C, C, C, END],
        [START, A, A, END, END, B, C, B, C, END],
        [START, A, B, C, END, END, C, B, A, END],
    ]
    ids = task.input_ids(tf.constant(PAIRS)).numpy()
    assert [[one for one in row if one] for row in ids.tolist()] == expected
    assert task.token_counts(PAIRS)[:3] == [8, 5, 7]
    strict = make_task(10, truncate=False, with_start=True, ends_between=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ends between both.*at most 8 tokens"):
        strict.input_ids(tf.constant([PAIRS[3]]))


SEGMENTS = {"with_start": True, "segments": True}


def make_bert(**options):
    tokenizer = train_tokenizer("characters", ["aaabbc"])
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
    model = spread_weights(SequenceClassifier(Bert(tokenizer.vocabulary_size, **sizes), 2), 3)
    return ClassificationTask(model, tokenizer, LABELS, 11, **{"pairs": True} | options)


def test_segments_by_hand():
    task = make_bert(**SEGMENTS)
    inputs = task.model_inputs(task.input_ids(tf.constant(PAIRS[:3])))
    assert inputs["segment_ids"].numpy().tolist() == [
        [0, 0, 0, 0, 1, 1, 1],
        [0, 0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 1, 0],
    ]
    # Without padding, which is not read.
    view = task.read_tokens(tf.constant(["a\tb"]))
    assert view.inputs["segment_ids"].numpy().tolist() == [[0, 0, 0, 1, 1]]
    plain = make_bert(with_start=True)
    assert list(plain.model_inputs(plain.input_ids(tf.constant(PAIRS)))) == ["token_ids"]
    assert np.abs(plain.probabilities(PAIRS) - task.probabilities(PAIRS)).max() > 1e-3
    single = make_bert(pairs=False, with_start=True)
    single.probabilities(PAIRS)  # its graph reads single texts
    single.read_pairs(True)
    np.testing.assert_allclose(single.probabilities(PAIRS), task.probabilities(PAIRS), 1e-5)
    assert (single.pairs, single.ends_between, single.segments) == (True, 1, True)


def test_segments_of_models_that_have_none():
    refused("needs a model with two segments.* segments=True", make_task, segments=True)
    one = SequenceClassifier(Bert(7, 1, 8, 2, 11, num_segments=1), 2)
    tokenizer = train_tokenizer("characters", ["aaabbc"])
    refused("two segments", ClassificationTask, one, tokenizer, LABELS, segments=True)
    refused("`ends_between` must be one of 1, 2.*3", make_task, ends_between=3)


@pytest.mark.parametrize("max_length", [6, 10, None])
@pytest.mark.parametrize("with_start", [False, True])
@pytest.mark.parametrize("ends", [1, 2])
def test_examples_have_the_inputs_of_the_task(max_length, with_start, ends):
    task = make_bert(with_start=with_start, ends_between=ends, segments=True)
    task.max_length = max_length or 64
    pairs = Pairs([*PAIRS, "\t"], ["no", "yes"] * 3 + ["no"], of_two=True)
    examples = LabelledExamples.from_targets(
        pairs,
        task.tokenizer,
        np.array([1, 2] * 3 + [1], np.int32),
        max_length,
        with_start=with_start,
        ends_between=ends,
        segments=True,
    )
    assert (len(examples), examples.dropped_empty) == (6, 1)
    counts = np.array(task.token_counts(PAIRS))
    assert examples.truncated == (0 if max_length is None else (counts > max_length).sum())
    inputs, labels = examples.assemble(np.arange(6))
    expected = task.model_inputs(task.input_ids(tf.constant(PAIRS)))
    assert inputs.keys() == expected.keys() == examples.signature[0].keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(inputs[name], values)
    assert labels.tolist() == [1, 2] * 3


def test_rows_of_pairs():
    tokenizer = train_tokenizer("symbols", ["x y z"])
    rows, first = pair_rows(["x y\tz", "z\tx x x"], tokenizer)
    assert (rows.lengths.tolist(), first.tolist()) == ([3, 4], [2, 1])


@pytest.mark.parametrize(
    "make", thinned([partial(make_bert, **SEGMENTS, ends_between=2), make_task])
)
def test_saved_and_exported(make, tmp_path):
    task = make()
    loaded = reloaded(task, tmp_path / "task")
    assert loaded.pairs
    np.testing.assert_array_equal(loaded.probabilities(PAIRS), task.probabilities(PAIRS))
    # The order of the texts counts.
    swapped = ["\t".join(reversed(pair.split("\t"))) for pair in PAIRS]
    assert np.abs(task.probabilities(PAIRS) - task.probabilities(swapped)).max() > 1e-3
    exported = open_exported(export_saved_model(task, tmp_path / "exported", n_best=2))
    assert exported.predict(PAIRS) == task.predict(PAIRS)
    assert_alike(exported.predict_n_best(PAIRS, 2), task.predict_n_best(PAIRS, 2), atol=1e-4)
    outputs = exported._model.signatures["token_ids"](token_ids=task.input_ids(tf.constant(PAIRS)))
    np.testing.assert_allclose(outputs["probabilities"], task.probabilities(PAIRS), atol=1e-5)
    refused("two texts with one tab .*tabs: 2 in 'a", exported.predict, ["a\tb", "a\tb\tc"])


def test_texts_in_place_of_pairs_and_long_ones():
    task = make_task(truncate=False)
    refused(
        "two texts with one tab between them. Received: text='ab', tabs=0", task.predict, ["ab"]
    )
    refused("Received: text=.*, tabs=2", task.predict, ["a\tb", "a\tb\tc"])
    message = "A pair of texts must have at most 9 tokens. Received: 12 tokens"
    refused(message, task.predict, [PAIRS[3]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 10 tokens"):
        task.input_ids(tf.constant([PAIRS[3]]))
    texts = task.example_texts()
    assert all(text.count("\t") == 1 for text in texts)
    assert len(task.predict(texts)) == len(texts)
    # Millions of words are not tokenized; both texts are cut.
    many = make_task().predict(["a " * 9 + "\t" + "b " * 1_000_000])
    assert many == make_task().predict(["a " * 9 + "\t" + "b " * 99])
