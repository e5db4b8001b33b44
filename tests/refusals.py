"""Calls that a `UserError` refuses."""

import pytest

from keras_attn.validation import UserError


def refused(message, function, *arguments, **options):
    """Checks that a call raises an error whose text matches a pattern; returns the text."""
    with pytest.raises(UserError, match=message) as caught:
        function(*arguments, **options)
    return str(caught.value)


def refused_in_one_line(message, function, *arguments, **options):
    """Checks also that the text has one line."""
    text = refused(message, function, *arguments, **options)
    assert "\n" not in text
    return text


def message_of(function, *arguments, **options):
    """The text, of one line, of the error that a call raises."""
    return refused_in_one_line(None, function, *arguments, **options)


def refusals(function, *cases):
    """A test of each case: named arguments, and a pattern for the text of the error."""

    @pytest.mark.parametrize(("arguments", "message"), cases)
    def test(arguments, message):
        refused(message, function, **arguments)

    return test
