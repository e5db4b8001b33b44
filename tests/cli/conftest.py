"""A small untrained task in a folder, and the command line called in this process."""

import pytest

from keras_attn.cli import main


class CommandLine:
    """Calls the command line; returns status, standard output and standard error."""

    def __init__(self, capfd):
        self.capfd = capfd

    def __call__(self, *arguments):
        self.capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code or 0
        return status, *self.capfd.readouterr()

    def output(self, *arguments):
        """The standard output of a command that succeeds."""
        status, output, error = self(*arguments)
        assert status == 0, error
        return output

    def refusal(self, *arguments):
        """The one line that a command prints about a user's mistake."""
        status, output, error = self(*arguments)
        assert (status, output, error.count("\n")) == (2, "", 1), error[-2000:]
        assert error.startswith("keras-attn: error: ")
        return error


@pytest.fixture
def keras_attn(monkeypatch, capfd):
    # `main` sets these for its process; the test's own go back to what they were.
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")
    return CommandLine(capfd)


@pytest.fixture(scope="session")
def task_folder(tmp_path_factory):
    """An untrained letters-to-letters task with sources of at most 22 letters."""
    from keras_attn.models import Transformer
    from keras_attn.tasks import DecodingSettings, Seq2SeqTask
    from keras_attn.tokenizers import CharacterTokenizer

    tokenizer = CharacterTokenizer.train(["abcdefg "])
    model = Transformer(
        tokenizer.vocabulary_size, num_layers=1, hidden_dim=12, num_heads=2, intermediate_dim=17
    )
    decoding = DecodingSettings(beams=3, max_source_length=23, max_length=19)
    folder = tmp_path_factory.mktemp("task") / "task"
    Seq2SeqTask(model, tokenizer, tokenizer, decoding).save(folder)
    return folder


@pytest.fixture(scope="session")
def exported(task_folder, tmp_path_factory):
    from keras_attn.export import export_saved_model
    from keras_attn.tasks import Task

    folder = tmp_path_factory.mktemp("exported")
    export_saved_model(Task.load(task_folder), folder, n_best=2)
    return folder
