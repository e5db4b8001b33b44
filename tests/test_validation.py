"""What TensorFlow says of an assertion, in one line without its words."""

import pytest
import tensorflow as tf

from keras_attn.validation import asserted

pytestmark = pytest.mark.tensorflow

SENTENCE = "The text must have at most 3 tokens. Received:"


def failed(*values):
    tf.debugging.Assert(tf.constant(False), [SENTENCE, *map(tf.constant, values)])
    return tf.constant(0)


@pytest.mark.parametrize("call", [failed, tf.function(failed)], ids=["eager", "graph"])
@pytest.mark.parametrize("values", [(9,), (-9, 12)])
def test_the_sentence_and_the_values(call, values):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        call(*values)
    assert asserted(str(raised.value.message)) == f"{SENTENCE} {' '.join(map(str, values))}"


def test_other_errors_are_their_first_line():
    assert asserted(" indices[0] = 9 is not in [0, 3)\nmore") == "indices[0] = 9 is not in [0, 3)"
