"""What the progress of a training counts."""

from collections import Counter
from types import SimpleNamespace

import pytest
from rich.console import Console

from keras_attn.data import LabelledExamples, Pairs, TextExamples
from keras_attn.training import Trainer, TrainingSettings
from keras_attn.training.reporting import progress as clocked
from keras_attn.training.reporting.progress import ProgressReport
from tests.export.test_matrix import MATRIX

pytestmark = pytest.mark.tensorflow

TEXTS = ["the cat sat", "mat", "the", "cat sat .", "the mat"]


@pytest.mark.parametrize("task", ["classification", "causal_lm"])
def test_classifiers_count_texts_and_tokens(task, tmp_path, monkeypatch):
    """Language models count the tokens that they predict, which are all of them."""
    read = Counter()
    monkeypatch.setattr(ProgressReport, "update", lambda self, *values: read.update(values[-1]))
    if task == "classification":
        trained = MATRIX["classification Bert"]()
        pairs = Pairs(TEXTS, ["good", "fair", "good", "fair", "fair"])
        examples = LabelledExamples.from_pairs(pairs, trained.tokenizer, trained.labels)
        expected = {"texts": 10, "tokens": 2 * int(examples.lengths.sum())}
    else:
        trained = MATRIX["causal_lm CausalTransformer"]()
        examples = TextExamples.from_texts(["cab", "abba"], trained.tokenizer)
        expected = {"tokens": 2 * int(examples.lengths.sum())}
    settings = {"epochs": 2, "batch_tokens": 16, "accumulate_steps": 2, "deterministic": False}
    Trainer(trained, TrainingSettings(**settings), tmp_path).fit(examples, lambda: {"loss": 1.0})
    assert read == expected


def test_the_speed_of_each_unit_is_shown(monkeypatch):
    now = 0.0
    monkeypatch.setattr(clocked, "time", SimpleNamespace(monotonic=lambda: now))
    console = Console(width=200, record=True, force_terminal=False)
    progress = ProgressReport(total_steps=30, console=console)
    for step in (1, 11, 21):
        now += 20
        progress.update(step, 1, 0.5, {"texts": 100, "tokens": 40000})
    progress.validating("too early")
    now += 10
    progress.validating("loss of 7 of 9 batches")
    progress.validating("loss of 8 of 9 batches")
    progress.validating("predicting")  # after a long part at once
    progress.resume()
    progress.validating("predicting again")
    text = console.export_text()
    assert "validation: loss of 7 of 9 batches" in text
    assert "validation: predicting" in text
    assert "8 of 9" not in text
    assert "again" not in text
    assert "too early" not in text
    assert "step 21/30 epoch 1 loss 0.5000 5 texts/s, 2,000 tokens/s, 0:18 left" in text
    # Resumed where a validation is due: the first update makes the graph and is no speed.
    progress = ProgressReport(total_steps=250, step=200, console=console)
    progress.update(200, 1, 0.5, {"texts": 0})
    now += 600
    progress.update(201, 1, 0.5, {"texts": 10})
    now += 20
    progress.update(211, 1, 0.5, {"texts": 100})
    text = console.export_text()
    assert "step 201/250 epoch 1 loss 0.5000\n" in text
    assert "39 more updates: about 78 s at 0.5 a second" in text
    for total, expected in ((1200, "10 min"), (24_000, "3.3 h")):
        progress = ProgressReport(total_steps=total, console=console)
        for step in (1, 11):
            now += 5
            progress.update(step, 1, 0.5, {"texts": 100})
        assert f"more updates: about {expected} at 2 a second" in console.export_text()
    progress = ProgressReport(total_steps=300, console=console, minutes=1)
    for step in (1, 11, 21):
        now += 10
        progress.update(step, 1, 0.5, {"texts": 100})
    text = console.export_text()
    assert "The run ends after 1 min, and makes about 1 updates a second until then." in text
    assert "step 21/300 epoch 1 loss 0.5000 10 texts/s, 0:30 left" in text
