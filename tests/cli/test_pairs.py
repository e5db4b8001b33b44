"""`predict` of pairs of texts, right and wrong ones."""

import io

import pytest

from keras_attn.models import Bert, SequenceClassifier
from keras_attn.tasks import RankTask
from keras_attn.tokenizers import CharacterTokenizer

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def folder(tmp_path):
    tokenizer = CharacterTokenizer("abc ")
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
    model = SequenceClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=1)
    RankTask(model, tokenizer, max_length=32).save(tmp_path / "task")
    return tmp_path / "task"


@pytest.fixture
def predict(folder, keras_attn, monkeypatch):
    def call(content):
        class Input:
            buffer = io.BytesIO(content)
            isatty = bool

        monkeypatch.setattr("sys.stdin", Input)
        return keras_attn("predict", folder)

    return call


@pytest.mark.parametrize("wrong", [1, 2, 3, 5, 7])
def test_answers_before_a_wrong_line_are_printed(predict, wrong):
    right = [f"a {'b' * number}\tc\tb" for number in range(7)]
    _, expected, _ = predict("\n".join(right).encode())
    lines = [*right[: wrong - 1], "", *right[wrong - 1 :]]
    status, output, error = predict("\n".join(lines).encode())
    assert (status, output) == (2, "".join(expected.splitlines(True)[: 2 * (wrong - 1)]))
    assert f"standard input, line {wrong}: An input is a query and its passages" in error


def test_pairs_that_lack_a_text_are_counted(predict):
    status, output, error = predict(b"a\tb\na\t\n\tb\na\tb\tc\n")
    assert (status, output.count("\n")) == (0, 5)
    assert "blank: 2 of 4 texts, which have an answer that says nothing" in error
