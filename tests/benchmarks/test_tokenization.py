"""Texts against ids: what is timed, and what is made of the times."""

import json
from types import SimpleNamespace

import pytest

from keras_attn.benchmarks import tokenization
from keras_attn.benchmarks.tokenization import benchmark_tokenization
from keras_attn.cli import main
from keras_attn.export import export_saved_model
from keras_attn.validation import UserError
from tests.export.toy import ToyTask
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "toy"
    export_saved_model(ToyTask(), folder, examples=["abc", "e", "aéb"])
    return folder


def test_times_are_medians_of_pairs_after_the_first(model, monkeypatch):
    seen, clock = [], [0.0]

    class Model:
        def __init__(self, folder, disable_xla):
            assert folder == model / "1"
            assert disable_xla

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *_: None  # noqa: E731

        def run(self, name, inputs):
            seen.append((name, {key: array.tolist() for key, array in inputs.items()}))
            clock[0] += seconds.pop(0)

    # Texts and ids in turn, the first pair for warming up.
    seconds = [9.0, 1.0, 2.0, 1.0, 3.0, 2.0, 8.0, 2.0]
    monkeypatch.setattr(tokenization, "CppSavedModel", Model)
    monkeypatch.setattr(tokenization, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert benchmark_tokenization(model, batch=5, runs=3) == {
        "model": "toy",
        "batch": 5,
        "runs": 3,
        "text_seconds": 3.0,
        "ids_seconds": 2.0,
        "least_text_seconds": 2.0,
        "least_ids_seconds": 1.0,
        "added": 1.0,  # of 1, 0.5 and 3
        "least_added": 1.0,
    }
    assert [name for name, _ in seen] == 4 * ["serving_default", "token_ids"]
    texts, ids = seen[0][1], seen[1][1]
    assert [text.decode() for text in texts["text"]] == ["abc", "e", "aéb", "abc", "e"]
    assert ids["token_ids"] == [[4, 5, 6], [8, 0, 0], [4, 3, 5], [4, 5, 6], [8, 0, 0]]


def test_the_command_prints_a_line(model, capfd):
    command = ["benchmark", "tokenization", str(model), "--batch", "2", "--runs", "1"]
    assert main(command) in (0, None)
    output, error = capfd.readouterr()
    assert json.loads(output)["batch"] == 2
    assert error == ""


def test_mistakes(model, tmp_path):
    refused("runs=0", benchmark_tokenization, model, runs=0)
    with pytest.raises(UserError, match="The folder of the SavedModel does not exist"):
        benchmark_tokenization(tmp_path / "absent")
