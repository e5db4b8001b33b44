"""Every task with every family of models, tiny: exported, and verified in TensorFlow's C++ runtime.

A new family is one line here. XLA is disabled, as TensorFlow Serving does.
"""

import inspect
import json
from functools import partial

import numpy as np
import pytest

from keras_attn import models, tasks
from keras_attn.export import export_saved_model
from keras_attn.export.golden import read_golden
from keras_attn.export.layout import README
from keras_attn.export_manifest import read_manifest
from keras_attn.tokenizers import WordPieceTokenizer, train_tokenizer
from tests.export.served_attention import check_served_attention
from tests.export.toy import verified
from tests.layers.judges import spread_weights

pytestmark = pytest.mark.tensorflow

LENGTH = 7
SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "the", "cat", "##s", "sat", "mat", "."]
LABELS = ["fair", "good"]


def seq2seq(family, *arguments, **options):
    source = train_tokenizer("characters", ["abcdefg"])
    target = train_tokenizer("symbols", ["AA B K D EH"])
    sizes = (source.vocabulary_size, target.vocabulary_size)
    decoding = tasks.DecodingSettings(beams=2, max_source_length=LENGTH, max_length=4)
    model = spread_weights(family(*sizes, *arguments, **options))
    return tasks.Seq2SeqTask(model, source, target, decoding)


def language_model(family, beams=2, **options):
    tokenizer = train_tokenizer("characters", ["aaabbc"])
    decoding = tasks.DecodingSettings(beams=beams, max_source_length=LENGTH, max_length=4)
    model = spread_weights(family(tokenizer.vocabulary_size, **options))
    return tasks.CausalLMTask(model, tokenizer, decoding)


def of_words(task, model, *arguments):
    """A task of one vocabulary of words, with random weights."""
    return task(spread_weights(model), WordPieceTokenizer(WORDS, lowercase=True), *arguments)


def classification(encoder, **options):
    model = models.SequenceClassifier(encoder(len(WORDS), **options), len(LABELS))
    return of_words(tasks.ClassificationTask, model, LABELS, LENGTH)


def label_sets(encoder, **options):
    model = models.SequenceClassifier(encoder(len(WORDS), **options), len(LABELS))
    task = partial(tasks.MultiLabelClassificationTask, thresholds=[0.4, 0.6])
    return of_words(task, model, LABELS, LENGTH)


def regression(encoder, **options):
    model = models.SequenceClassifier(encoder(len(WORDS), **options), 1)
    return of_words(tasks.RegressionTask, model, ["price"], [40.0], [8.0], LENGTH)


def ranks(encoder, **options):
    model = models.SequenceClassifier(encoder(len(WORDS), **options), 1)
    return of_words(tasks.RankTask, model, LENGTH)


def questions(encoder, **options):
    model = models.TokenClassifier(encoder(len(WORDS), **options), 2)
    return of_words(tasks.QuestionAnsweringTask, model, LENGTH)


def images(encoder, **options):
    model = models.SequenceClassifier(encoder(**options), len(LABELS), "first")
    return tasks.ImageClassificationTask(spread_weights(model), LABELS)


def masked(encoder, **options):
    model = models.MaskedLanguageModel(encoder(len(WORDS), **options))
    return of_words(tasks.MaskedLMTask, model, LENGTH)


def tags(encoder, **options):
    model = models.TokenClassifier(encoder(len(WORDS), **options), len(LABELS))
    return of_words(tasks.TokenClassificationTask, model, LABELS, LENGTH)


def embedding(encoder, **options):
    task = partial(tasks.EmbeddingTask, max_length=LENGTH)
    return of_words(task, encoder(len(WORDS), **options))


def forecast(family, **options):
    model = family(LENGTH, horizon=3, known_scales=[2.0], patch_length=2, **options)
    return tasks.ForecastTask(spread_weights(model), {"target": ["y"], "known": ["off"]})


def predicted(task, texts):
    """Answers of a task to its example texts, the inputs of a forecaster as JSON."""
    if isinstance(task, tasks.RankTask):
        return task.scores(texts)
    if not isinstance(task, tasks.ForecastTask):
        return task.predict(texts)
    rows = [json.loads(text) for text in texts]
    return task.predict(*([row[name] for row in rows] for name in ("past", "future")))


BERT = SIZES | {"max_length": LENGTH}
ETC_SIZES = SIZES | {"radius": 2, "num_units": 3, "unit_length": 3}
MATRIX = {
    "seq2seq Transformer": lambda: seq2seq(models.Transformer, **SIZES),
    "seq2seq T5": lambda: seq2seq(models.T5, key_dim=3, num_buckets=8, max_distance=6, **SIZES),
    "seq2seq Marian": lambda: seq2seq(models.Marian, **SIZES),
    "seq2seq SynthesizerTransformer": lambda: seq2seq(
        models.SynthesizerTransformer, max_length=LENGTH, **SIZES
    ),
    "seq2seq RecurrentSeq2Seq": lambda: seq2seq(
        models.RecurrentSeq2Seq, num_layers=1, hidden_dim=6
    ),
    "seq2seq GNMT": lambda: seq2seq(models.GNMT, num_layers=2, hidden_dim=6),
    "seq2seq ConvSeq2Seq": lambda: seq2seq(
        models.ConvSeq2Seq, num_layers=1, hidden_dim=6, learned_positions=LENGTH
    ),
    "causal_lm CausalTransformer": lambda: language_model(
        models.CausalTransformer, beams=1, **SIZES
    ),
    "causal_lm GPT2": lambda: language_model(models.GPT2, max_length=11, **SIZES),
    "causal_lm CompressiveTransformer": lambda: language_model(
        models.CompressiveTransformer,
        segment_length=3,
        memory_length=3,
        compressed_length=2,
        **SIZES,
    ),
    "causal_lm Reformer": lambda: language_model(
        models.Reformer, num_buckets=4, num_hashes=2, chunk_length=4, **SIZES
    ),
    "classification TransformerEncoder": lambda: classification(models.TransformerEncoder, **SIZES),
    "classification Bert": lambda: classification(models.Bert, **BERT),
    "classification ETC": lambda: classification(models.ETC, **ETC_SIZES),
    "multi_label_classification TransformerEncoder": lambda: label_sets(
        models.TransformerEncoder, **SIZES
    ),
    "multi_label_classification Bert": lambda: label_sets(models.Bert, **BERT),
    "multi_label_classification ETC": lambda: label_sets(models.ETC, **ETC_SIZES),
    "regression TransformerEncoder": lambda: regression(models.TransformerEncoder, **SIZES),
    "regression Bert": lambda: regression(models.Bert, **BERT),
    "regression ETC": lambda: regression(models.ETC, **ETC_SIZES),
    "rank Bert": lambda: ranks(models.Bert, **BERT),
    "rank TransformerEncoder": lambda: ranks(models.TransformerEncoder, **SIZES),
    "rank ETC": lambda: ranks(models.ETC, **ETC_SIZES),
    "question_answering Bert": lambda: questions(models.Bert, pooler=False, **BERT),
    "question_answering TransformerEncoder": lambda: questions(models.TransformerEncoder, **SIZES),
    "image_classification PatchEncoder": lambda: images(
        models.PatchEncoder, image_size=4, patch_size=2, **SIZES
    ),
    "masked_lm Bert": lambda: masked(models.Bert, pooler=False, **BERT),
    "masked_lm TransformerEncoder": lambda: masked(models.TransformerEncoder, **SIZES),
    "masked_lm ETC": lambda: masked(models.ETC, **ETC_SIZES),
    "token_classification Bert": lambda: tags(models.Bert, pooler=False, **BERT),
    "token_classification TransformerEncoder": lambda: tags(models.TransformerEncoder, **SIZES),
    "token_classification ETC": lambda: tags(models.ETC, **ETC_SIZES),
    "embedding Bert": lambda: embedding(models.Bert, **BERT),
    "embedding TransformerEncoder": lambda: embedding(models.TransformerEncoder, **SIZES),
    "embedding ETC": lambda: embedding(models.ETC, **ETC_SIZES),
    "forecast Forecaster": lambda: forecast(models.Forecaster, **SIZES),
}
# What no other test of the default suite exports and verifies. tests/cli/test_everything.py and the
# tests of each kind of task do so with what is usual for it.
# Its segments are put together in Python.
WITHOUT_ATTENTION = {"causal_lm CompressiveTransformer"}
# Heads of other models; and an encoder of what no task reads.
NOT_SERVED = {
    *("Ensemble", "FeatureEncoder", "MaskedLanguageModel", "PooledEncoder"),
    *("SequenceClassifier", "TokenClassifier"),
}


def test_every_kind_of_task_and_every_family_is_declared():
    kinds, families = zip(*(name.split() for name in MATRIX), strict=True)
    assert set(kinds) == {kind for kind in tasks.Task.classes if not kind.startswith("test")}
    every = {name for name in models.__all__ if inspect.isclass(getattr(models, name))}
    assert set(families) == every - NOT_SERVED - {"Preset"}


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRIX)
def test_it_is_exported_and_verified(name, tmp_path):
    task = MATRIX[name]()
    texts = task.example_texts()
    expected = predicted(task, texts)
    n_best = task.decoding.beams if isinstance(task, tasks.GeneratingTask) else 2
    folder = export_saved_model(task, tmp_path / "model", n_best=n_best)
    report = verified(folder, timeout=3600)  # on a machine with much else to do
    assert any("XLA disabled" in check for check in report.checks)
    golden = {signature: outputs for signature, _, outputs in read_golden(folder).examples}
    left_out = read_manifest(folder)["left_out"]
    assert set(left_out) == ({"attention"} if name in WITHOUT_ATTENTION else set())
    assert set(golden) == set(task.serving_functions(n_best)) - set(left_out)
    for reason in left_out.values():
        assert f"no signature `attention`. {reason}" in (folder / README).read_text("utf-8")
    if not left_out:
        check_served_attention(task, folder)
    loaded = tasks.Task.load(folder)
    for weight, found in zip(task.backbone.weights, loaded.backbone.weights, strict=True):
        np.testing.assert_array_equal(found.numpy(), weight.numpy())
    outputs = golden["serving_default"]
    names = ("text", "label", "tags", "embedding", "labels", "numbers", "quantiles")
    names += ("answer", "score")
    name, answers = next((key, outputs[key]) for key in names if key in outputs)
    if name == "labels":
        rows = zip(answers, outputs["predicted"], strict=True)
        assert [[one.decode() for one in row[chosen]] for row, chosen in rows] == expected
    elif name == "numbers":
        np.testing.assert_allclose(answers[:, 0], expected, rtol=1e-4)
    elif answers.dtype == object:
        assert [answer.decode() for answer in answers] == expected
    else:
        np.testing.assert_allclose(answers, expected, rtol=1e-4, atol=1e-6)
