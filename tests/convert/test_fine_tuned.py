"""Encoders without a head: converted, fine-tuned on pairs of texts, and back to Hugging Face."""

import json

import numpy as np
import pytest

from keras_attn.convert import convert_huggingface, write_huggingface
from keras_attn.tasks import Task
from keras_attn.tokenizers.pipeline.text_frame import TextFrame, frame_processor
from keras_attn.training import run as job
from tests.convert.made import GOLDEN, copy_of, write_json
from tests.refusals import refused_in_one_line
from tests.written import written

pytestmark = pytest.mark.tensorflow

PAIRS = [f"the cat {number}\ta dog {'sat' if number % 2 else 'ran'}" for number in range(12)]
# The end tokens between two texts, and whether these are different segments, in transformers.
FRAMES = {
    "bert_masked": (1, True),
    "electra_encoder": (1, True),
    "distilbert_masked": (1, False),
    "deberta_encoder": (1, True),
    "roberta_masked": (2, False),
    "mpnet_masked": (2, False),
    "modernbert_masked": (1, False),
}
FRAMES_OF_OTHERS = {"modernbert_encoder": (1, False)}
KINDS = {"classification": "label", "rank": "relevance"}


def with_tokenizer(name, folder):
    """A copy of a checkpoint with a tokenizer of whole words."""
    copy_of(GOLDEN / name, folder)
    padding = json.loads((folder / "config.json").read_text())["pad_token_id"]
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, *["the", "cat", "a", "dog", "sat", "ran"], *map(str, range(18))]
    tokens.insert(padding, "[PAD]")
    ids = {token: number for number, token in enumerate(tokens)}
    assert len(ids) == 29
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    frame = TextFrame("[CLS]", "[SEP]", *(FRAMES | FRAMES_OF_OTHERS)[name])
    added = [{"id": ids[one], "content": one, "special": True, **flags} for one in special]
    definition = {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": frame_processor(frame, ids),
        "model": {"type": "WordPiece", "vocab": ids, "unk_token": "[UNK]"},
    }
    write_json(folder / "tokenizer.json", definition)
    return folder


def trained(name, kind, folder, **model):
    source = convert_huggingface(with_tokenizer(name, folder / "checkpoint")).task
    source.save(folder / "start")
    lines = [f"{pair}\t{number % 2}" for number, pair in enumerate(PAIRS)]
    columns = {"query": 1, "passage": 2} if kind == "rank" else {"text": 1, "other": 2}
    settings = {
        "task": kind,
        "init": str(folder / "start"),
        "model": model,
        "training": {"steps": 1, "warmup_steps": 0, "jit": "off"},
        "data": {
            "train": [str(written(folder / "pairs.tsv", lines))],
            "columns": columns | {KINDS[kind]: 3},
            "hold_out": 4,
        },
    }
    job.train(folder / "run", settings, reports=False)
    return source, Task.load(folder / "run" / "task")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "classification") for name in FRAMES),
        ("bert_masked", "rank"),
        ("mpnet_masked", "rank"),
    ],
)
def test_goes_back(name, kind, tmp_path):
    pooling = {} if "modern" in name else {"pooling": "pooler"}
    _, task = trained(name, kind, tmp_path, **pooling)
    assert (task.ends_between, task.segments) == FRAMES[name]
    write_huggingface(task, tmp_path / "back")
    again = convert_huggingface(tmp_path / "back").task
    if kind == "classification":
        again.read_pairs(True, *FRAMES[name])
    compute = "scores" if kind == "rank" else "probabilities"
    found, expected = (getattr(one, compute)(PAIRS) for one in (again, task))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(np.asarray(expected).reshape(len(PAIRS), -1)[:, 0]) > 1e-6


def test_a_new_pooler_leaves_the_rest_as_it_was(tmp_path, capsys):
    source, task = trained("distilbert_masked", "classification", tmp_path, pooling="pooler")
    assert "head: new and untrained: pooler, output; encoder" in capsys.readouterr().out
    encoder = task.backbone.encoder
    assert encoder.get_config()["pooler_activation"] == "relu"
    new = {id(weight) for weight in encoder.pooler.weights}
    kept = [weight for weight in encoder.weights if id(weight) not in new]
    for weight, before in zip(kept, source.backbone.encoder.weights, strict=True):
        np.testing.assert_allclose(weight, before, atol=0.01)  # one step


def test_other_pooling_says_what_goes_back(tmp_path, capsys):
    _, task = trained("roberta_masked", "classification", tmp_path)
    assert "to go back to Hugging Face: --set model.pooling=pooler," in capsys.readouterr().out
    message = (
        r"RobertaForSequenceClassification .* no counterpart of pooling='mean'\. Its classifiers "
        r".*: train with `--set model.pooling=pooler`\.$"
    )
    refused_in_one_line(message, write_huggingface, task, tmp_path / "back")


def test_an_encoder_without_the_transform_of_its_heads(tmp_path):
    _, task = trained("modernbert_encoder", "classification", tmp_path)
    message = r"no counterpart of transform=None\. .* of ModernBertForMaskedLM: train from such a c"
    refused_in_one_line(message, write_huggingface, task, tmp_path / "back")
