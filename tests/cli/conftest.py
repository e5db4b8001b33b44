"""A small untrained task in a folder, and the command line called in this process."""

import pytest

from keras_attn.cli import main


@pytest.fixture
def keras_attn(monkeypatch, capfd):
    """Calls the command line; returns status, standard output and standard error."""
    # `main` sets these for its process; the test's own go back to what they were.
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")

    def call(*arguments):
        capfd.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code or 0
        return status, *capfd.readouterr()

    return call


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
