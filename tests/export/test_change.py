"""How far answers change: counted by hand."""

import numpy as np
import pytest

from keras_attn.export.change import Change, SignatureChange
from tests.export.toy import strings
from tests.refusals import message_of, refused


def test_texts_are_counted_and_numbers_beside_equal_texts_compared():
    before = {
        "text": strings(b"a", b"b", b"c", b"d"),
        "score": np.array([-0.5, -1.0, -40.0, -np.inf], np.float32),
    }
    after = {
        "text": strings(b"a", b"other", b"c", b"d"),
        "score": np.array([-0.25, -9.0, -30.0, -np.inf], np.float32),
    }
    change = SignatureChange()
    change.add(before, after)
    # 0.25, as it is, for -0.5; 10 of 40 for -40; another text has another score.
    assert change == SignatureChange(changed=1, largest_difference=0.25)
    change.add({"score": np.array([2.0])}, {"score": np.array([3.0])})
    assert change == SignatureChange(changed=1, largest_difference=0.5)


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_what_is_no_number_any_more_is_another_answer(value):
    change, scores = SignatureChange(), np.array([[1.0, 2.0], [3.0, 4.0]])
    change.add({"score": scores}, {"score": np.array([[1, 2], [3, value]])})
    assert change == SignatureChange(changed=1, largest_difference=0.0)


def test_ids_of_other_lengths_are_others():
    change = SignatureChange()
    change.add(
        {"token_ids": np.array([[5, 2, 0], [7, 8, 2], [5, 5, 2]])},
        {"token_ids": np.array([[5, 2], [7, 8], [5, 2]])},
    )
    assert change == SignatureChange(changed=2)


def test_the_tolerance_is_for_shares_and_for_numbers():
    change = Change(20, {"best": SignatureChange(1, 0.04), "score": SignatureChange(0, 0.05)})
    change.require_within(0.05)
    message = "best changes 1 of 20 .*; score .*weights='int8', tolerance=0.045"
    refused(message, change.require_within, 0.045, weights="int8")
    change = Change(20, {"best": SignatureChange(2, 0.0), "score": SignatureChange()})
    assert "score" not in message_of(change.require_within, 0.05)
