"""Vectors of texts in a NumPy file."""

import io

import numpy as np
import pytest

from keras_attn.models import Bert
from keras_attn.tasks import EmbeddingTask
from keras_attn.tokenizers import CharacterTokenizer

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def task(tmp_path):
    tokenizer = CharacterTokenizer("abc ")
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
    made = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
    made.save(tmp_path / "task")
    return made


def test_vectors_are_written(task, keras_attn, monkeypatch, tmp_path):
    class Input:
        buffer = io.BytesIO(b"a b\n\ncab\n")
        isatty = bool

    monkeypatch.setattr("sys.stdin", Input)
    file = tmp_path / "vectors.npy"
    output = keras_attn.output("predict", tmp_path / "task", "--npy", file)
    assert output == f"{file}: 3 vectors of 8 numbers\n"
    found = np.load(file)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, task.predict(["a b", "", "cab"]), atol=1e-6)
    error = keras_attn.refusal("predict", tmp_path / "task", "--npy", file, "--n-best", "2", "a")
    assert "do not apply to embeddings" in error


def test_other_tasks_have_no_vectors(keras_attn, task_folder, tmp_path):
    file = tmp_path / "vectors.npy"
    error = keras_attn.refusal("predict", task_folder, "--npy", file, "a")
    assert "--npy is for embedding models. Received: task='seq2seq'" in error
    assert not file.exists()
