"""Mistakes in the settings of each task, reported in one line before any training."""

import pytest

from keras_attn.data import Pairs
from keras_attn.recipes import merged
from keras_attn.training import run as job
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.task_runs.made import BASES, TRAINING, base, write_data
from tests.written import written

pytestmark = pytest.mark.tensorflow

NO_DECODING = ({"decoding": {"beams": 2}}, "has no `decoding`. Received: decoding=.'beams': 2.")
NO_WEIGHTS = (
    {"training": {"class_weights": "balanced"}},
    "has no labels, and no `training.class_we",
)
NO_METRICS = ({"metrics": ["bleu"]}, "without `metrics`. Received: metrics=.'bleu'")
MISTAKES = {
    "classification": [
        NO_DECODING,
        ({"metrics": ["bleu"]}, "must be one of 'accuracy'"),
        ({"model": {"heads": 2}}, "Received: model setting='heads'"),
    ],
    "multi_label_classification": [
        NO_DECODING,
        ({"metrics": ["accuracy"]}, "must be one of 'micro_f1'"),
    ],
    "regression": [
        NO_DECODING,
        ({"metrics": ["accuracy"]}, "must be one of 'mae'"),
        ({"training": {"class_weights": "balanced"}}, "has no labels, and no"),
    ],
    "forecast": [
        NO_DECODING,
        ({"tokenizers": {"text": {"kind": "characters"}}}, "Series need no `tokenizers`"),
        ({"model": {"horizon": 3}}, "`model.horizon` follows from the data: set `data.horizon`"),
        ({"data": {"hold_out": 2, "horizon": 3}}, "`data.hold_out` must be at least the horizon"),
        ({"metrics": ["wer"]}, "must be one of 'mase'"),
    ],
    "image_classification": [
        NO_DECODING,
        ({"metrics": ["bleu"]}, "must be one of 'accuracy'"),
        ({"model": {"heads": 2}}, "Received: model setting='heads'"),
        ({"model": {"patch_size": 3}}, "Received: patch_size=3, height=8, width=8"),
        ({"model": {"image_size": "8x8"}}, "Received: image_size='8x8'"),
        ({"model": {"channels": 4}}, "`channels` must be 1 or 3. Received: channels=4"),
        ({"tokenizers": {"text": {"kind": "symbols"}}}, "Images need no `tokenizers`"),
        ({"data": {"max_source_length": 9}}, "no `data.max_source_length`. Received: max_source_l"),
        ({"data": {"train": "digits", "hold_out": 9}}, "no meaning for digits, whose parts are f"),
        ({"data": {"train": ["a", "b"]}}, "digits`, one folder, or one table of files"),
        ({"data": {"train": "absent"}}, "absent: no such folder or file"),
        ({"data": {"hold_out": 60}}, "At most 59 of the 60 different sources of .*count=60"),
        ({"training": {"batch_tokens": 3}}, "must hold the longest image.*batch_tokens=3"),
    ],
    "embedding": [
        NO_DECODING,
        ({"metrics": ["bleu"]}, "must be one of 'mrr', 'recall_at_1', .*Received: metric='bleu'"),
        ({"training": {"consistency": 1.0}}, "an embedding does not have. .*consistency=1.0"),
        ({"training": {"cpu_shards": 2}}, "needs whole batches. Received: cpu_shards=2"),
        ({"model": {"pooling": "sum"}}, "`pooling` must be one of"),
        (
            {"preset": "lm_tiny"},
            "one for this task.*task='embedding', tasks_of_preset=.'causal_lm'",
        ),
        ({"data": {"max_source_length": 2}}, "at least 3: a start, .*max_length=2"),
    ],
    "causal_lm": [
        NO_WEIGHTS,
        NO_METRICS,
        ({"data": {"hold_out": 30}}, "Fewer than all 30 lines .*hold_out=30"),
        ({"tokenizers": {"source": {}}}, "must be one of 'text'"),
        ({"attention": "locale"}, "Did you mean 'local'"),
        ({"attention": {"windw": 3}}, "`attention` must have a name"),
        (
            {"attention": {"name": "local", "sliding_windw": 5}},
            "Did you mean 'sliding_window'.*attention local='sliding_windw'",
        ),
        ({"attention": {"name": "local", "sliding_window": "wide"}}, "sliding_window='wide'"),
        (
            {"attention": {"name": "local", "num_heads": 5}},
            "set `model.num_heads`. Received: num_heads=5",
        ),
        (
            {"attention": {"name": "dense", "key_dim": 7}},
            "set `model.hidden_dim` and `model.num_heads`. Received: key_dim=7",
        ),
        (
            {"attention": {"name": "random_synthesizer", "max_length": 9}},
            "set `data.max_source_length`. Received: max_length=9",
        ),
        ({"attention": "global_local"}, "must support causal masking"),
    ],
    "masked_lm": [
        NO_DECODING,
        NO_METRICS,
        (
            {"tokenizers": {"text": {"kind": "sentencepiece", "vocabulary_size": 60}}},
            "a mask token: the kind word_piece, or .*Received: tokenizer='sent",
        ),
        (
            {"tokenizers": {"text": {"kind": "characters", "with_mask": False}}},
            "with `with_mask`. Received: tokenizer='char",
        ),
        (
            {"tokenizers": {"text": {"kind": "characters"}}, "data": {"whole_words": True}},
            "Whole words are hidden where .*tokenizer='characters'",
        ),
        ({"data": {"whole_words": 2}}, "`whole_words` must be true or false. Received: whole_w"),
        ({"data": {"max_source_length": 2}}, "at least 3: a start, .*max_length=2"),
        (
            {"preset": "lm_tiny"},
            "one for this task.*task='masked_lm', tasks_of_preset=.'causal_lm'",
        ),
    ],
    "span_corruption": [
        NO_METRICS,
        ({"decoding": {"beam": 2}}, "Did you mean 'beams'"),
        ({"tokenizers": {"shared": False}}, "`tokenizers.shared`. Received: shared=False"),
        ({"tokenizers": {"target": {}}}, "must be one of 'shared', 'source'"),
        ({"tokenizers": {"source": {"kind": "characters"}}}, "with sentinels.*tokenizer='char"),
        ({"tokenizers": {"source": {"sentinels": 1}}}, "needed=2, sentinels=1"),
        ({"data": {"noise_density": 1}}, "above 0 and below 1. Received: noise_density=1"),
        ({"data": {"mean_noise_span_length": 0}}, "at least 1. Rec.*mean_noise_span_length=0"),
        (
            {"data": {"max_source_length": 1}},
            "needs at least a token and an end id.*max_source_length=1",
        ),
        (
            {"preset": "lm_tiny"},
            "one for this task.*task='span_corruption', tasks_of_.*'causal_lm'",
        ),
    ],
    "token_classification": [
        NO_DECODING,
        ({"metrics": ["bleu"]}, "must be one of 'tag_accuracy', 'span_f1'"),
        ({"model": {"pooling": "max"}}, "Received: model setting='pooling'"),
        (
            {"preset": "lm_tiny"},
            "one for this task.*task='token_classification', tasks_of_preset=.'causal_lm'",
        ),
        (
            {"data": {"test": "long.tsv", "long_texts": "error"}},
            "room for every test text .*longest=.*, max_source_len",
        ),
        ({"data": {"columns": {"label": 2}}}, "`columns` must be one of 'text', 'tags'"),
        ({"data": {"long_texts": "keep"}}, "`long_texts` must be one of 'cut', 'drop', 'error'"),
    ],
}


def test_every_task_has_some():
    assert MISTAKES.keys() == BASES.keys()


@pytest.mark.parametrize(
    ("task", "layer", "message"),
    [(task, *mistake) for task, mistakes in MISTAKES.items() for mistake in mistakes],
)
def test_mistakes(task, layer, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "long.tsv", ["anna " * 40 + "\t" + "O " * 40])
    data = {"train": write_data(task, tmp_path / "data", 30, 1)}
    settings = base(task, data)
    if "preset" in layer:  # whose sizes are others
        settings = {"task": task, "data": data, "training": TRAINING}
    with pytest.raises((UserError, OSError), match=message) as caught:
        job.train(tmp_path / "run", merged(settings, layer))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["classification", "token_classification", "image_classification"])
def test_labels_have_no_perplexity(name):
    refused("has no beams and no perplexity", TASK_RUNS[name].measure, None, None, [], None, True)


def test_texts_with_several_labels_are_counted_and_one_is_named():
    texts = Pairs(["bad", "good film", "good film", "bad"], ["neg", "pos", "neg", "neg"])
    lines = TASK_RUNS["classification"].described(texts)
    assert "1 text occurs more than once, with different labels, such as 'good film'" in lines[2]
