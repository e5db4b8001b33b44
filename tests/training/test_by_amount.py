"""Rules of recipes that follow the amount of training data."""

import types

import pytest

from keras_attn.training.by_amount import follow_amount
from keras_attn.training.resolving import check
from keras_attn.training.run_settings import RunSettings, read_run_file
from tests.refusals import refused

pytestmark = pytest.mark.tensorflow
RULES = {
    "rows < 1000": {"model": {"dropout": 0.2}, "training": {"batch_tokens": 512}},
    "rows < 100": {"model": {"dropout": 0.4}},
    "words < 250": {"tokenizers": {"source": {"lowercase": False}}, "training": {"seed": 9}},
}
LARGE = {"rows >= 5000": {"training": {"seed": 3}}, "rows >= 900": {"training": {"seed": 4}}}
BASE = {"preset": "g2p_small", "data": {"train": ["pairs.tsv"]}, "by_amount": {}}
WORDS = types.SimpleNamespace(roles=["source"], columns_of=lambda texts, roles: [texts])


def fitted(rows, words, *layers):
    """What the rules come to: dropout, batch, lower case, seed; and which of them applied."""
    settings = RunSettings.resolve(BASE, {"by_amount": RULES}, *layers)
    texts = ["one " * words] * rows
    settings, applied = follow_amount(settings, WORDS, texts)
    assert settings.by_amount == {}
    model, training = settings.model, settings.training
    lowercase = settings.tokenizers["source"].get("lowercase")
    return (model.get("dropout"), training.batch_tokens, lowercase, training.seed), applied


@pytest.mark.parametrize(
    ("rows", "words", "layers", "expected"),
    [
        (1000, 1, (), (None, 2048, True, 1)),
        (999, 1, (), (0.2, 512, True, 1)),
        (100, 3, (), (0.2, 512, True, 1)),
        (99, 2, (), (0.4, 512, False, 9)),  # both rules of rows, and 198 words
        (99, 3, (), (0.4, 512, True, 1)),
        (99, 3, ({"model": {"dropout": 0.1}},), (0.1, 512, True, 1)),
        (99, 2, ({"training": {"batch_tokens": 64, "seed": 5}},), (0.4, 64, False, 5)),
        (99, 2, ({"tokenizers": {"source": {"kind": "symbols"}}},), (0.4, 512, None, 9)),
        (99, 2, ({"by_amount": {}},), (None, 2048, True, 1)),
        (1500, 1, ({"by_amount": LARGE},), (None, 2048, True, 4)),
        (5000, 1, ({"by_amount": LARGE},), (None, 2048, True, 3)),
        (900, 1, ({"by_amount": LARGE},), (0.2, 512, True, 4)),
    ],
)
def test_rules_apply_below_their_limits_and_give_way_to_users(rows, words, layers, expected):
    assert fitted(rows, words, *layers)[0] == expected


def test_what_was_applied_is_known():
    assert fitted(99, 3)[1] == {
        "rows < 1000": {"training.batch_tokens": 512},
        "rows < 100": {"model.dropout": 0.4},
    }


def test_words_of_many_texts_are_estimated_from_a_sample():
    texts = ["one", "one two three"] * 150_000  # 600,000 words; every third text is read
    rule = {
        "words < 600001": {"training": {"seed": 2}},
        "words < 600000": {"training": {"seed": 3}},
    }
    settings = RunSettings.resolve(BASE, {"by_amount": rule})
    assert follow_amount(settings, WORDS, texts)[0].training.seed == 2


def test_an_end_that_is_set_counts_alone():
    rule = {"rows < 10": {"training": {"min_steps": 300}}}
    for layer, least in (({}, 300), ({"epochs": 2}, 0), ({"epochs": 2, "min_steps": 7}, 7)):
        settings = RunSettings.resolve(BASE, {"by_amount": rule}, {"training": layer})
        assert follow_amount(settings, WORDS, ["a"])[0].training.min_steps == least


def test_epochs_that_are_set_end_with_a_validation():
    rule = {"rows < 10": {"training": {"validate_every": 50}}}
    cases = (
        ({}, 50),
        ({"steps": 9}, 50),
        ({"epochs": 9}, 0),
        ({"epochs": 9, "validate_every": 3}, 3),
    )
    for layer, every in cases:
        settings = RunSettings.resolve(BASE, {"by_amount": rule}, {"training": layer})
        assert follow_amount(settings, WORDS, ["a"])[0].training.validate_every == every


def test_a_finished_run_has_no_rules(tmp_path):
    settings, _ = follow_amount(RunSettings.resolve(BASE, {"by_amount": RULES}), WORDS, ["a"] * 99)
    settings.write(tmp_path / "run.yaml")
    assert RunSettings.read(tmp_path / "run.yaml") == settings
    text = (tmp_path / "run.yaml").read_text().replace("by_amount: {}\n", "")
    (tmp_path / "run.yaml").write_text(text)  # as the version before wrote it
    assert read_run_file(tmp_path / "run.yaml")["by_amount"] == {}
    assert RunSettings.read(tmp_path / "run.yaml") == settings


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"row < 5": {}}, "a condition such as 'rows < 10000' or .*Received: 'row < 5'"),
        ({"rows <= 5": {}}, "a condition such as .*'rows <= 5'"),
        ({"rows > 5": {}}, "a condition such as .*'rows > 5'"),
        ({"rows < 5": {"training": {"sed": 1}}}, "no training setting `sed`. Did you mean `seed`"),
        ({"rows < 5": {"model": {"drop": 1}}}, "model setting.*drop"),
    ],
)
def test_mistakes_in_rules_are_found_whether_they_apply_or_not(rules, message):
    refused(message, check, RunSettings.resolve(BASE, {"by_amount": rules}))
