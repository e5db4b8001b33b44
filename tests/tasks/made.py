"""A task of a few thousand parameters with random weights; comparisons of tasks."""

import inspect

import numpy as np

from keras_attn.models import Transformer
from keras_attn.tasks import DecodingSettings, Seq2SeqTask, Task
from keras_attn.tokenizers import train_tokenizer
from tests.layers.judges import spread_weights

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 11}
TEXTS = ["abc", "", "fedcba", "a", "gé", "bbbbbbbb", "日本"]


def make_task(seed=0, model=None, **decoding):
    source = train_tokenizer("characters", ["abcdefgé"])
    target = train_tokenizer("symbols", ["AA B CH D EH"])
    arguments = {"target_vocabulary_size": target.vocabulary_size} | SIZES | (model or {})
    backbone = spread_weights(Transformer(source.vocabulary_size, **arguments), seed)
    # Not too sure of itself, or every hypothesis would be of one length.
    backbone.target_embedding.embeddings.assign(backbone.target_embedding.embeddings * 0.5)
    settings = {"beams": 3, "max_length": 7, "max_source_length": 11} | decoding
    return Seq2SeqTask(backbone, source, target, DecodingSettings(**settings))


def reloaded(task, folder):
    """The task from a folder that it was saved to, compared with the task."""
    task.save(folder)
    loaded = Task.load(folder)
    assert type(loaded) is type(task)
    for name in inspect.signature(type(task)).parameters:
        if name != "backbone" and not name.endswith("tokenizer"):
            assert getattr(loaded, name) == getattr(task, name), name
    return loaded


def assert_alike(found, expected, **tolerance):
    """Hypotheses of equal texts and nearly equal scores."""
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.text for h in ours] == [h.text for h in theirs]
        for field in ("score", "log_probability"):
            values = [[getattr(h, field) for h in row] for row in (ours, theirs)]
            np.testing.assert_allclose(*values, **tolerance)


def assert_answers(outputs, hypotheses, rtol):
    """Outputs of the signature `n_best` are the texts and scores of hypotheses."""
    texts = [[text.decode() for text in row] for row in outputs["text"]]
    assert texts == [[h.text for h in row] for row in hypotheses]
    scores = [[h.score for h in row] for row in hypotheses]
    np.testing.assert_allclose(outputs["score"], scores, rtol=rtol)
