"""The commands of the guide to WMT14: each is understood, and those that train are the recipe."""

import pathlib
import re
import shlex

import pytest

from keras_attn.cli.parser import parse
from keras_attn.training.run_settings import RunSettings

pytestmark = pytest.mark.tensorflow
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/pages/guides/wmt14.md"


def commands():
    """The command lines of `keras-attn` in fenced blocks, without redirections."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    found = [re.split(" [<>] ", line)[0] for line in lines if line.startswith("keras-attn ")]
    return [shlex.split(line)[1:] for line in found]


TRAINED = [command for command in commands() if "--preset" in command]


def test_there_are_commands_of_each_kind():
    assert {command[0] for command in commands()} == {"train", "average", "evaluate", "predict"}
    assert len(TRAINED) == 6
    assert "--resume" in [word for command in commands() for word in command]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_the_command_is_understood(command):
    assert parse(command).command == command[0]


@pytest.mark.parametrize("command", TRAINED, ids=lambda command: command[-1])
def test_the_command_has_the_papers_settings(keras_attn, monkeypatch, command):
    found = []
    monkeypatch.setattr(
        "keras_attn.training.run.train",
        lambda out, *layers, resume: found.append(RunSettings.resolve(*layers)),
    )
    status, _, error = keras_attn(*command)
    assert (status, error) == (0, "")
    (settings,) = found
    training = settings.training
    big, french = "transformer_big" in command, "train.fr" in command
    assert training.steps == (300_000 if big else 100_000)
    assert training.batch_tokens * training.accumulate_steps == 32_768
    devices = "tpu" if "tpu" in command else "mirrored"
    assert training.strategy == (devices if training.accumulate_steps == 1 else "auto")
    assert settings.tokenizers["source"]["vocabulary_size"] == (32_000 if french else 37_000)
    assert settings.model == ({"dropout": 0.1} if big and french else {})
    language = "fr" if french else "de"
    assert settings.data.train == ["train.en", f"train.{language}"]
    assert settings.data.valid == ["newstest2013.en", f"newstest2013.{language}"]
    assert settings.data.test == ["newstest2014.en", f"newstest2014.{language}"]
    assert settings.data.skip_bad_lines
