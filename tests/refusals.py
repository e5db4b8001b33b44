"""Calls that a `UserError` refuses."""

import pytest

from keras_attn.validation import UserError


def refused(message, function, *arguments, **options):
    """Checks that a call raises an error whose text matches a pattern."""
    with pytest.raises(UserError, match=message):
        function(*arguments, **options)


def message_of(function, *arguments, **options):
    """The text, of one line, of the error that a call raises."""
    with pytest.raises(UserError) as caught:
        function(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
