"""Ranking of passages: scores, order, losses, lists, exports; mistakes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import RankedExamples, RankedPassages, read_ranked_passages
from keras_attn.models import Bert, SequenceClassifier
from keras_attn.tasks import RankTask, measure_rankings, open_exported
from keras_attn.tokenizers import train_tokenizer
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import reloaded
from tests.written import written

pytestmark = pytest.mark.tensorflow

PASSAGES = ["ba", "cab", "a", "abcabc", "cc"]
A, B, C, START, END = 4, 5, 6, 1, 2


def make_task(**options):
    tokenizer = train_tokenizer("characters", ["aaabbc"])
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
    model = spread_weights(SequenceClassifier(Bert(tokenizer.vocabulary_size, **sizes), 1), 3)
    options = {"max_length": 11, "with_start": True, "segments": True} | options
    return RankTask(model, tokenizer, **options)


def test_scores_by_hand():
    task, plain = make_task(), make_task(activation="identity")
    pairs = [f"ab\t{passage}" for passage in PASSAGES]
    ids = np.array([[START, A, B, END, B, A, END]], "int32")
    segments = np.array([[0, 0, 0, 0, 1, 1, 1]])
    expected = task.backbone({"token_ids": ids, "segment_ids": segments}).numpy()[0, 0]
    assert plain.scores(pairs)[0] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(task.scores(pairs), 1 / (1 + np.exp(-plain.scores(pairs))), 1e-5)


def test_order_of_passages():
    task = make_task()
    ranked = task.rank("ab", [*PASSAGES, "ba"])
    scores = task.scores([f"ab\t{passage}" for passage in [*PASSAGES, "ba"]])
    assert [one.score for one in ranked] == sorted(scores, reverse=True)
    assert [one.passage for one in ranked] == [[*PASSAGES, "ba"][one.place] for one in ranked]
    places = [one.place for one in ranked]
    assert places.index(0) + 1 == places.index(5)  # of equal scores in their order
    several = task.predict(["ab\t" + "\t".join([*PASSAGES, "ba"]), "c\tab"])
    assert [one.place for one in several[0]] == places
    assert len(several[1]) == 1
    assert task.rank("ab", []) == []
    # 3 + 2 + 1 tokens, 6 + 2 + 1 + 3, which are too many, and 1 + 2 + 3.
    assert task.count_truncated(["ab\tba\tc", "c\tc\tcabcabcab", "c\tab"]) == 1
    assert task.count_truncated([]) == 0


def test_saved_and_exported(tmp_path):
    task = make_task(activation="identity", ends_between=2)
    loaded = reloaded(task, tmp_path / "task")
    pairs = [f"ab\t{passage}" for passage in PASSAGES]
    np.testing.assert_array_equal(loaded.scores(pairs), task.scores(pairs))
    exported = open_exported(task.export(tmp_path / "exported"))
    np.testing.assert_allclose(exported.scores(pairs), task.scores(pairs), atol=1e-5)
    ranked = [(one.passage, one.place) for one in task.rank("ab", PASSAGES)]
    assert [(one.passage, one.place) for one in exported.rank("ab", PASSAGES)] == ranked
    # Several queries at once, the second one with fewer passages.
    passages = tf.constant([PASSAGES, ["c", "", "ab", "", ""]])
    answer = exported._model.signatures["rank"](query=tf.constant(["ab", "c"]), passages=passages)
    assert [one.decode() for one in answer["passages"].numpy()[0]] == [one for one, _ in ranked]
    assert answer["places"].numpy()[0].tolist() == [place for _, place in ranked]
    best = [one.passage for one in task.rank("c", ["c", "ab"])]
    assert [one.decode() for one in answer["passages"].numpy()[1]] == [*best, "", "", ""]
    assert answer["scores"].numpy()[1, 2:].tolist() == [0, 0, 0]


def test_losses_by_hand():
    task = make_task()
    logits = tf.constant([[2.0], [1.0], [0.5], [3.0], [9.0], [9.0]])  # two lists of three
    labels = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, np.nan]])
    loss, _, count, right = task.loss(labels, logits)
    expected = np.log(np.exp([2, 1, 0.5]).sum()) - 2 + np.log(np.exp([3, 9]).sum()) - 9
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert (float(count), float(right)) == (2, 2)
    task.ranking_loss = "pointwise"
    labels = tf.constant([[1.0, 0.0, 0.25], [0.0, 1.0, np.nan]])
    loss, _, count, right = task.loss(labels, logits)
    bce = [np.log1p(np.exp(-2)), np.log1p(np.exp(1)), np.log1p(np.exp(0.5)) - 0.25 * 0.5]
    bce += [np.log1p(np.exp(3)), np.log1p(np.exp(-9))]
    assert float(loss) == pytest.approx(sum(bce), rel=1e-5)
    assert (float(count), float(right)) == (5, 2)


@pytest.mark.parametrize("ranking_loss", ["listwise", "pointwise"])
def test_padding_has_no_gradient(ranking_loss):
    task = make_task()
    task.ranking_loss = ranking_loss
    logits = tf.Variable([[2.0], [1.0], [4.0], [3.0]])
    with tf.GradientTape() as tape:
        loss = task.loss(tf.constant([[1.0, 0.0], [np.nan, np.nan]]), logits)[0]
    gradient = tape.gradient(loss, logits).numpy()
    assert np.isfinite(gradient).all()
    assert gradient[2:].tolist() == [[0], [0]]
    assert np.abs(gradient[:2]).min() > 0


ROWS = {  # three queries; "bb" has no relevant passage
    "ab": {"ba": 2.0, "cab": 1.0, "a": 0.0},
    "c": {"cc": 1.0, "abcabcabcabc": 0.0},
    "bb": {"b": 0.0},
}


def passages(alone=False):
    rows = [(query, one, value) for query, found in ROWS.items() for one, value in found.items()]
    queries, texts, relevances = map(list, zip(*rows, strict=True))
    return RankedPassages(queries, texts, relevances=None if alone else relevances)


def lists_of(examples):
    """Query and passages of each list, of characters, and the relevances."""
    inputs, relevances = examples.assemble(np.arange(len(examples)))
    spelled = {A: "a", B: "b", C: "c", END: "|", START: "", 0: ""}
    texts = ["".join(spelled[one] for one in row) for row in inputs["token_ids"].tolist()]
    size = examples.size
    return [texts[i : i + size] for i in range(0, len(texts), size)], relevances, inputs


def test_lists_of_a_query():
    task = make_task()
    examples = RankedExamples.from_passages(
        passages(), task.tokenizer, 11, size=4, with_start=True, segments=True
    )
    assert examples.notes[0].startswith("1 queries without a relevant passage")
    seen = set()
    for epoch in range(30):
        lists, relevances, inputs = lists_of(examples.of_epoch(epoch))
        assert [one[0] for one in lists] == ["ab|ba|", "ab|cab|", "c|cc|"]
        assert set(lists[0][1:3]) == {"ab|cab|", "ab|a|"}  # less relevant ones of the same query
        assert lists[1][1] == "ab|a|"  # but no more relevant one
        assert lists[2][1] == "c|abcabca|"  # cut to the room of 11 tokens
        others = {text for one in lists for text in one if text}
        assert not {"c|c|", "ab|ab|"} & others
        seen |= {text.split("|")[1] for text in lists[0][3:] + lists[1][2:]}
        np.testing.assert_array_equal(np.nansum(relevances, axis=1), 1)
        np.testing.assert_array_equal(relevances[:, 0], 1)
    assert seen >= {"cc", "b"}  # of other queries
    expected = task.model_inputs(tf.constant(inputs["token_ids"]))["segment_ids"]
    np.testing.assert_array_equal(inputs["segment_ids"][: len(expected)], expected)


def test_lists_of_pairs_alone_and_single_passages():
    task = make_task()
    examples = RankedExamples.from_passages(passages(alone=True), task.tokenizer, 30, size=3)
    lists, _, _ = lists_of(examples)
    assert len(lists) == 6
    own = [(query, one) for query in ROWS for one in ROWS[query]]
    for (query, one), found in zip(own, lists, strict=True):
        assert found[0] == f"{query}|{one}|"
        assert all(text.split("|")[1] not in ROWS[query] for text in found[1:] if text)
    examples = RankedExamples.from_passages(passages(), task.tokenizer, 30, loss="pointwise")
    lists, relevances, _ = lists_of(examples)
    assert [text for (text,) in lists][:3] == ["ab|ba|", "ab|cab|", "ab|a|"]
    assert relevances[:, 0].tolist() == [1.0, 0.5, 0.0, 0.5, 0.0, 0.0]  # parts of the greatest one


def test_measured():
    task, rows = make_task(), passages()
    found = measure_rankings(task, rows, ["mrr_at_10", "accuracy"])
    reciprocal = []
    for query in ("ab", "c"):
        order = [ROWS[query][one.passage] for one in task.rank(query, list(ROWS[query]))]
        reciprocal.append(1 / (1 + next(i for i, value in enumerate(order) if value > 0)))
    assert found["items"] == 2
    assert found["mrr_at_10"] == pytest.approx(100 * np.mean(reciprocal))
    alone = passages(alone=True).with_others(2)
    assert alone.relevances == [1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0]
    assert set(alone.targets[3:5]) <= set(ROWS["c"]) | set(ROWS["bb"])


def test_tables(tmp_path):
    path = written(tmp_path / "r.csv", ["id,question,document,label", "1,ab,ba,1", "2,ab,c,0"])
    assert read_ranked_passages(path).relevances == [1.0, 0.0]
    path = written(tmp_path / "r.tsv", ["ab\tba"])
    assert read_ranked_passages(path).relevances is None
    for row, message in (
        ("ab\tba\t-1", "from 0 on, found -1"),
        ("ab\tba\tx", "'x' in place of a number"),
    ):
        path = written(tmp_path / "bad.tsv", ["ab\tb\t1", row])
        refused(f"bad.tsv, line 2.*{message}", read_ranked_passages, path)


def test_mistakes():
    task = make_task(truncate=False)
    refused("a tab before each passage. Received: text='ab', tabs=0", task.predict, ["ab"])
    refused("A query or passage has no tab", task.rank, "a\tb", ["c"])
    refused("A pair of texts must have at most 8 tokens", task.rank, "abcab", ["abcab"])
    two = SequenceClassifier(Bert(7, 1, 8, 2, 11), 2)
    refused("one output, the score.*outputs=2", RankTask, two, task.tokenizer)
    refused("`activation` must be one of 'sigmoid', 'identity'", make_task, activation="tanh")
