"""What a signature says that a model attends to, without an export."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.models import RecurrentSeq2Seq
from keras_attn.tasks import Seq2SeqTask
from keras_attn.tokenizers import train_tokenizer
from keras_attn.validation import UserError
from tests.layers.judges import spread_weights

pytestmark = pytest.mark.tensorflow


def served(**options):
    source = train_tokenizer("characters", ["abcdefg"])
    target = train_tokenizer("symbols", ["AA B K D EH"])
    sizes = (source.vocabulary_size, target.vocabulary_size)
    model = RecurrentSeq2Seq(*sizes, num_layers=1, hidden_dim=6, **options)
    return Seq2SeqTask(spread_weights(model), source, target).serving_functions(1)["attention"]


def test_nothing_is_attended_to_at_padding():
    """A recurrent decoder knows of no padding in its target: its rows are more than are shown."""
    texts, targets = tf.constant(["bad", "cabbage"]), tf.constant(["B AA D", ""])
    outputs = served().function(text=texts, target=targets)
    sums = outputs["cross"].numpy().sum(axis=-1)[:, 0, 0]
    np.testing.assert_allclose(sums, [[1, 1, 1, 1], [1, 0, 0, 0]], rtol=1e-5)
    assert outputs["cross_rows"].numpy()[1].tolist() == [b"</s>", b"", b"", b""]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"attention": None},
            "no attention layers whose weights can be recorded. Received: model='RecurrentSeq2Seq'",
        ),
        ({"intra_attention": 3}, "inside a loop cannot be returned from a graph"),
    ],
)
def test_a_model_without_weights_to_be_seen_has_no_signature(options, message):
    attention = served(**options)
    with pytest.raises(UserError, match=message):
        tf.function(attention.function, autograph=False).get_concrete_function(**attention.inputs)
    assert attention.optional
