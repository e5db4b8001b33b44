"""How many rows a training may lose."""

from types import SimpleNamespace

import pytest

from keras_attn.training.prepared import _check_losses
from keras_attn.training.run_texts import Lines
from tests.refusals import message_of, refused

pytestmark = pytest.mark.tensorflow


def check(texts, malformed, empty=0, long=0, held_out=0, most=0.05):
    settings = SimpleNamespace(data=SimpleNamespace(max_dropped=most, valid=None))
    parts = {"train": Lines(["a"] * texts, "t", malformed), "validation": ["a"] * held_out}
    examples = SimpleNamespace(
        name="t.tsv", dropped_empty=empty, dropped_long=long, dropped=empty + long
    )
    _check_losses(settings, parts, examples)


def test_rows_that_are_held_out_count():
    check(46, malformed=3, held_out=11)  # 3 of 60
    check(95, malformed=0, long=4, held_out=5)
    refused("of 95 rows 5 are too long", check, 95, malformed=0, long=5, held_out=5)


def test_advice_is_about_what_was_lost():
    message = (
        "t.tsv: of 90 rows 2 have no token, of 100 rows 4 are malformed, which is more than "
        "`data.max_dropped` allows (5%). Mend them, or set a larger `data.max_dropped` "
        "(--set data.max_dropped=0.07)."
    )
    assert message == message_of(check, 90, malformed=4, empty=2, held_out=6)
    refused("Set a larger `data.max_source_length` or", check, 90, malformed=0, long=9)
