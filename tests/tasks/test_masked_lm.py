"""Gaps of texts: the model's own probabilities, pieces of words, measures, saved, exported."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import MaskedExamples, Masking
from keras_attn.export import export_saved_model
from keras_attn.models import Bert, MaskedLanguageModel, TransformerEncoder
from keras_attn.tasks import ExportedMaskedLM, MaskedLMTask, open_exported
from keras_attn.tokenizers import PipelineTokenizer, WordPieceTokenizer, train_tokenizer
from keras_attn.tokenizers.byte_words import byte_characters
from keras_attn.validation import UserError
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.tasks.made import assert_alike, reloaded

pytestmark = pytest.mark.tensorflow

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MASK = 4
TOKENS = [*SPECIAL, "the", "cat", "##s", "sat", "mat", ".", "##a\\1"]
TEXTS = ["The [MASK] sat.", "", "no gap", "[MASK]", "[MASK]  the[MASK] mat [MASK]", "cat [MASK]"]


def make_task(max_length=11, vocabulary_size=13, **tokenizer):
    """Its embedding has a row more than there are tokens."""
    encoder = Bert(vocabulary_size, 1, 10, 2, 17, max_length=13, pooler=False)
    model = spread_weights(MaskedLanguageModel(encoder), 3)
    return MaskedLMTask(model, WordPieceTokenizer(TOKENS, True, **tokenizer), max_length)


@pytest.fixture(scope="module")
def task():
    return make_task()


def gap_scores(task, text):
    """Log-probabilities at each gap of a text by itself, (gaps, tokens)."""
    ids = np.array([[2, *task.tokenizer.tokenize(tf.constant([text])).to_list()[0], 3]], "int32")
    logits = np.asarray(task.backbone({"token_ids": ids}))[0, ids[0] == MASK].astype("float64")
    scores = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    scores[:, [*range(5), 12]] = -np.inf  # special tokens, and no token
    return scores


def filled(text, tokens):
    for token in tokens:
        before, after = text.split("[MASK]", 1)
        if token.startswith("##"):
            before, token = before.rstrip(), token[2:]
        text = before + token + after
    return text


def test_gaps_get_their_most_probable_tokens(task):
    expected = [
        filled(text, [TOKENS[place] for place in gap_scores(task, text).argmax(axis=1)])
        for text in TEXTS
    ]
    assert task.predict(TEXTS) == expected
    assert expected[1:3] == ["", "no gap"]
    assert len({text.split()[0] for text in expected if text}) > 1
    assert not any("[" in text for text in expected)


def test_the_most_probable_ways_come_first(task):
    for text, hypotheses in zip(TEXTS, task.predict_n_best(TEXTS, 6), strict=True):
        scores = gap_scores(task, text)
        ways = {(): 0.0}
        for row in scores:
            ways = {
                (*way, token): total + row[token]
                for way, total in ways.items()
                for token in np.flatnonzero(np.isfinite(row)).tolist()
            }
        best = sorted(ways.items(), key=lambda way: -way[1])[:6]
        expected = [filled(text, [TOKENS[token] for token in way]) for way, _ in best]
        assert [hypothesis.text for hypothesis in hypotheses] == expected
        found = [hypothesis.log_probability for hypothesis in hypotheses]
        np.testing.assert_allclose(found, [total for _, total in best], atol=1e-4)


@pytest.mark.parametrize(
    ("text", "ids", "expected"),
    [
        ("The [MASK] sat.", ["cat"], "The cat sat."),
        ("The cat [MASK] sat", ["##s"], "The cats sat"),
        ("The cat  [MASK] sat", ["##s"], "The cats sat"),
        ("[MASK] x", ["##s"], "s x"),
        ("a[MASK]b", ["the"], "atheb"),
        ("a [MASK] [MASK].", ["mat", "##s"], "a mats."),
        ("a [MASK]", ["##a\\1"], "aa\\1"),
        ("", [], ""),
    ],
)
def test_tokens_written_into_gaps(task, text, ids, expected):
    row = tf.ragged.constant([[TOKENS.index(token) for token in ids]], tf.int32, ragged_rank=1)
    assert task._written(tf.constant([text]), row).numpy()[0].decode() == expected


@pytest.mark.parametrize(
    ("kind", "text", "filling", "expected"),
    [
        ("symbols", "[MAX [MASK] 2 ]", "9", "[MAX 9 2 ]"),
        ("symbols", "2[MASK]2", "##x", "2##x2"),
        ("characters", "a[MASK] [MASK]", "##", "a# #"),
        ("byte_level_bpe", "a[MASK][MASK]", " b", "a b"),
        ("byte_level_bpe", "a[MASK][MASK]", "é", "aé"),  # of two bytes
        ("byte_level_bpe", "[MASK]a[MASK]", "é", "\ufffda\ufffd"),
        ("byte_level_bpe", "", "", ""),
    ],
)
def test_tokens_of_other_kinds_written_into_gaps(kind, text, filling, expected):
    options = {"vocabulary_size": 261} if kind == "byte_level_bpe" else {}
    texts = ["9 ##x", "[MAX 2 ]", "# a b"]
    tokenizer = train_tokenizer(kind, texts, with_mask=True, **options)
    encoder = TransformerEncoder(tokenizer.vocabulary_size, 1, 8, 2, 11)
    task = MaskedLMTask(MaskedLanguageModel(encoder), tokenizer, 32)
    ids = tokenizer.tokenize(tf.constant([filling]))
    assert task._written(tf.constant([text]), ids).numpy()[0].decode() == expected
    gaps = task.input_ids(tf.constant([text])).numpy() == tokenizer.mask_id
    assert gaps.sum() == text.count("[MASK]") == ids.row_lengths()[0]
    assert "[MASK]" not in task.predict([text])[0]


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
OWN_MASKS = {
    # Of a tokenizer.json of RoBERTa, whose mask takes the spaces before it.
    "byte-level": {
        "pre_tokenizer": BYTES,
        "model": {"type": "BPE", "merges": ["Ġ b"], "vocab": [*byte_characters(), "Ġb"]},
        "lstrip": True,
    },
    "unigram": {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 1, "vocab": ["▁", "a", "b", "s", "▁b"]},
        "lstrip": False,
    },
}


@pytest.fixture(scope="module", params=OWN_MASKS)
def own_mask(request):
    """A task whose tokenizer writes gaps as `<mask>`."""
    parts = OWN_MASKS[request.param]
    special = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    tokens = [*special, *parts["model"]["vocab"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if request.param == "unigram":
        vocabulary = [[token, -float(number)] for number, token in enumerate(tokens)]
    flags = {"special": True, "normalized": False, "single_word": False, "rstrip": False}
    added = [
        {"id": number, "content": one, "lstrip": parts["lstrip"] and one == "<mask>", **flags}
        for number, one in enumerate(special)
    ]
    definition = {
        "pre_tokenizer": parts["pre_tokenizer"],
        "model": parts["model"] | {"vocab": vocabulary},
        "added_tokens": added,
    }
    names = ["<pad>", "<s>", "</s>", "<unk>"]
    tokenizer = PipelineTokenizer(definition, names, mask_token="<mask>")
    encoder = TransformerEncoder(tokenizer.vocabulary_size, 1, 8, 2, 11)
    model = spread_weights(MaskedLanguageModel(encoder), 3)
    return MaskedLMTask(model, tokenizer, 32)


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("a <mask> a", " b", "a b a"),
        ("a<mask> a", " b", "a b a"),
        ("<mask> a", " b", "b a"),
        (" <mask>", " b", "b"),
        ("a [MASK]s", " b", "a bs"),
        ("a <mask> a", "s", {"byte-level": "as a", "unigram": "a s a"}),
        ("<mask>a", "s", "sa"),
        ("a  ", None, "a  "),
    ],
)
def test_spaces_around_what_is_written_into_gaps(own_mask, text, token, expected):
    tokenizer, vocabulary = own_mask.tokenizer, own_mask.tokenizer.vocabulary
    kind = "byte-level" if tokenizer.mask_takes_spaces else "unigram"
    marks = {"byte-level": "Ġ", "unigram": "▁"}
    row = [] if token is None else [vocabulary.index(token.replace(" ", marks[kind]))]
    ids = tf.ragged.constant([row], tf.int32, ragged_rank=1)
    found = own_mask._written(tf.constant([text]), ids).numpy()[0].decode()
    assert found == (expected[kind] if isinstance(expected, dict) else expected)


def test_gaps_as_the_tokenizer_writes_them(own_mask, tmp_path):
    texts = ["a <mask> s", "a [MASK] s", "<mask>[MASK]", "", "as"]
    found = own_mask.predict(texts)
    assert found[0] == found[1]
    assert found[3:] == ["", "as"]
    assert not any("mask" in text.lower() for text in found)
    ids = own_mask.input_ids(tf.constant(texts)).numpy()
    assert (ids == own_mask.tokenizer.mask_id).sum(axis=1).tolist() == [1, 1, 2, 0, 0]
    folder = export_saved_model(own_mask, tmp_path / "export")
    assert open_exported(folder).predict(texts) == found


def test_measured_on_hidden_tokens(task):
    texts = ["the cat sat. the cats sat", "mat the", "cat cat cat cat cat cat cat sat mat"]
    examples = MaskedExamples.from_texts(texts, Masking(task.tokenizer), 11)
    nll, correct, count = 0.0, 0, 0
    for number in range(len(examples)):
        inputs, labels = examples.assemble(np.array([number]))
        logits = np.asarray(task.backbone(inputs))[0].astype("float64")
        for row, label in zip(logits, labels[0].tolist(), strict=True):
            if label:
                nll += math.log(np.exp(row).sum()) - row[label]
                correct += row.argmax() == label
                count += 1
    assert count == 3
    expected = {"perplexity": math.exp(nll / count), "accuracy": 100 * correct / count}
    assert task.masked_scores(texts) == pytest.approx(expected, rel=1e-4)
    assert task.masked_scores(texts) == task.masked_scores(texts)


@pytest.mark.slow
def test_saved_and_exported(task, tmp_path):
    loaded = reloaded(task, tmp_path / "task")
    assert loaded.predict_n_best(TEXTS, 3) == task.predict_n_best(TEXTS, 3)
    folder = export_saved_model(task, tmp_path / "exported", n_best=3)
    exported = open_exported(folder)
    assert type(exported) is ExportedMaskedLM
    assert exported.predict(TEXTS) == task.predict(TEXTS)
    assert_alike(exported.predict_n_best(TEXTS, 3), task.predict_n_best(TEXTS, 3), atol=1e-4)
    with pytest.raises(UserError, match="`n_best` of the export. Received: n_best=4, exported=3"):
        exported.predict_n_best(TEXTS, 4)
    model = tf.saved_model.load(str(folder))
    found = model.signatures["serving_default"](text=tf.constant(TEXTS))
    best = [row[0] for row in task.predict_n_best(TEXTS, 1)]
    assert [text.decode() for text in found["text"].numpy()] == [h.text for h in best]
    expected = np.exp([h.log_probability for h in best])
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-4)


def test_ids_with_gaps_served(task):
    token_ids = task.input_ids(tf.constant(TEXTS))
    outputs = task.serving_functions(1)["token_ids"].function(token_ids)
    for text, ids, found, probabilities in zip(
        TEXTS, token_ids.numpy(), *(outputs[name].numpy() for name in outputs), strict=True
    ):
        scores = gap_scores(task, text)
        np.testing.assert_array_equal(found[ids != MASK], ids[ids != MASK])
        np.testing.assert_array_equal(found[ids == MASK], scores.argmax(axis=1))
        np.testing.assert_allclose(
            np.log(probabilities[ids == MASK]), scores.max(axis=1), atol=1e-4
        )
        assert (probabilities[ids != MASK] == 1).all()


def test_ids_with_gaps_in_several_ways_served(task):
    token_ids = task.input_ids(tf.constant(TEXTS))
    outputs = task.serving_functions(3)["n_best_token_ids"].function(token_ids)
    texts = task.serving_functions(3)["n_best"].function(tf.constant(TEXTS))
    np.testing.assert_allclose(outputs["probability"], texts["probability"], rtol=1e-4)
    for row, ids in enumerate(token_ids.numpy()):
        scores = gap_scores(task, TEXTS[row])
        for way, found in enumerate(outputs["token_ids"][row].numpy()):
            np.testing.assert_array_equal(found[ids != MASK], ids[ids != MASK])
            if outputs["probability"][row, way] == 0:
                continue
            log_probability = scores[np.arange(len(scores)), found[ids == MASK]].sum()
            assert np.log(outputs["probability"][row, way]) == pytest.approx(
                log_probability, abs=1e-4
            )


def test_example_texts_fit(task):
    for one in (task, make_task(max_length=3)):
        texts = one.example_texts()
        assert any("[MASK]" in text for text in texts)
        assert len(one.predict(texts)) == len(texts)


def test_mistakes_in_making_it():
    refused(
        "room for a token between start and end. Received: max_length=2", make_task, max_length=2
    )
    refused("Received: positions=13, max_length=14", make_task, max_length=14)
    with pytest.raises(UserError, match="recognize .* Received: split_special_tokens=True"):
        make_task(split_special_tokens=True)
    with pytest.raises(UserError, match="a mask token: .*`with_mask`. Received: tokenizer='char"):
        MaskedLMTask(make_task().backbone, train_tokenizer("characters", ["ab"]), 9)


def test_mistakes_in_using_it(task):
    refused("at most 9 tokens. Received: 10 tokens in 'cat cat", task.predict, ["cat " * 10])
    refused("number of tokens. Received: n_best=8, tokens=7", task.predict_n_best, ["a"], 8)
    refused("without a beam search. Received: beams=2", task.predict_n_best, ["a"], 1, beams=2)
    refused("No text of texts is left: none of 1 texts has a token", task.masked_scores, [""])
