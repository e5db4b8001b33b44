"""Which texts a run reads, and which it leaves unread."""

import pytest

from keras_attn.data import Pairs
from keras_attn.training import named_sets
from keras_attn.training.run_settings import DataSettings, RunSettings
from keras_attn.training.run_texts import Lines
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.validation import UserError

PARTS = {part: Pairs([part], [part], part) for part in ("train", "validation", "test")}


def read_pairs(data):
    return TASK_RUNS["seq2seq"].read_texts(data, 1)


def read_lines(data):
    return TASK_RUNS["masked_lm"].read_texts(data, 1)


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    listops = named_sets.NamedSet(lambda: dict(PARTS))
    monkeypatch.setitem(named_sets.SETS_OF_PAIRS, "listops", listops)


@pytest.mark.parametrize(
    ("test", "name"), [(None, "test"), ([], None), (["{}"], "{}")], ids=["own", "none", "file"]
)
def test_a_data_sets_own_test_part_can_be_left_out_or_replaced(tmp_path, test, name):
    path = tmp_path / "other.tsv"
    path.write_text("a\tb\n")
    named = test and [one.format(path) for one in test]
    parts = read_pairs(DataSettings(train=["listops"], test=named))
    found = parts["test"].name if "test" in parts else None
    assert found == (name and name.format(path))
    assert parts["train"] is PARTS["train"]


def test_lines_without_a_test(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\nthree\n")
    data = DataSettings(train=[str(path)], test=[])
    assert set(read_lines(data)) == {"train", "validation"}


@pytest.mark.parametrize(
    ("read", "line", "what"),
    [(read_pairs, "a\tb\n", "different sources"), (read_lines, "a b\n", "lines")],
)
def test_too_little_to_hold_something_out(tmp_path, read, line, what):
    path = tmp_path / "one"
    path.write_text(line)
    message = (
        f"{path} has too few {what} to hold out some for validation: name a set with `--valid`. "
        "Received: found=1."
    )
    with pytest.raises(UserError, match=f"^{message}$"):
        read(DataSettings(train=[str(path)]))
    assert set(read(DataSettings(train=[str(path)], valid=[str(path)]))) == {"train", "validation"}


@pytest.mark.parametrize(
    ("task", "preset", "texts"),
    [
        ("span_corruption", "t5_tiny", Lines(["ab", "ba"], "made")),
        ("seq2seq", "transformer_tiny", Pairs(["ab"], ["ba"])),
        ("embedding", "encoder_tiny", Pairs(["ab"], ["ba"])),
        ("causal_lm", "lm_tiny", Lines(["ab", "ba"], "made")),
        ("classification", "encoder_tiny", Pairs(["ab", "ba"], ["x", "y"])),
    ],
)
def test_every_text_is_counted_once_in_a_vocabulary(task, preset, texts, monkeypatch):
    seen = []

    def train_tokenizer(kind, sample, **options):
        seen.append(list(sample))

    monkeypatch.setattr("keras_attn.training.task_runs.base.train_tokenizer", train_tokenizer)
    settings = RunSettings.resolve({"task": task, "preset": preset, "data": {"train": ["x.tsv"]}})
    TASK_RUNS[task].train_tokenizers(settings, texts)
    assert seen == [["ab", "ba"]]
