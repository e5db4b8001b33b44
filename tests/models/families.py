"""One tiny model of each kind, and what their tests share."""

import functools

import keras
import numpy as np
from keras import ops

from keras_attn import models
from keras_attn.generation.decoder_state import take_rows
from keras_attn.layers import LuongAttention, MultiHeadAttention
from tests.backends import quick
from tests.generation.toy_models import compiled
from tests.harness import numpy
from tests.layers.judges import spread_weights

SOURCE = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
TARGET = np.array([[1, 4, 8, 6, 3, 9, 5], [1, 7, 5, 0, 0, 0, 0]], "int32")
INPUTS = {"source_ids": SOURCE, "target_ids": TARGET}

RECURRENT = {
    "additive LSTM": {"num_layers": 3, "dropout": 0.3},
    "additive GRU": {"cell": "gru", "num_layers": 1, "bidirectional": False},
    "Luong": {"attention": "luong", "score": "concat", "dropout": 0.3},
    "Luong's dot asked before the step": {
        "attention": LuongAttention("dot"),
        "input_feeding": False,
        "cell": "gru",
    },
    "multi-head, fed": {"attention": MultiHeadAttention(2, 3), "tie_output": False},
    "fixed context": {"attention": None, "cell": "gru", "target_vocabulary_size": 13},
    "fixed context, biased": {
        "attention": None,
        "num_layers": 1,
        "target_vocabulary_size": 13,
        "tie_output": False,
        "output_bias": True,
    },
    "intra-attention": {"num_layers": 1, "intra_attention": 3},
}
SMALL = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
_BLOCKS = {"num_layers": 2, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
_T5 = _BLOCKS | {"key_dim": 5, "num_buckets": 8, "max_distance": 6}
CASES = {
    **{
        name: lambda given=given: models.RecurrentSeq2Seq(11, **({"hidden_dim": 6} | given))
        for name, given in RECURRENT.items()
    },
    "GNMT": lambda: models.GNMT(11, num_layers=4, hidden_dim=6, attention_units=5),
    "GNMT, one layer": lambda: models.GNMT(11, 13, num_layers=1, hidden_dim=6, tie_output=True),
    "synthesizers": lambda: models.SynthesizerTransformer(
        11, scores=("dense", "dot_product"), max_length=19, **_BLOCKS
    ),
    "fixed random scores": lambda: models.SynthesizerTransformer(
        11, 13, scores="fixed_random", max_length=19, **_BLOCKS
    ),
    "T5": lambda: models.T5(11, **_T5),
    "T5, version 1.1": lambda: models.T5(
        11, 13, decoder_layers=1, activation="gelu_tanh", gated=True, tie_output=False, **_T5
    ),
    "Marian": lambda: models.Marian(11, **_BLOCKS),
    "Marian, unlike sides": lambda: models.Marian(
        11,
        13,
        decoder_layers=1,
        decoder_heads=3,
        decoder_intermediate_dim=5,
        activation="relu",
        scale_embedding=False,
        tie_output=False,
        attention_dropout=0.1,
        activation_dropout=0.2,
        **_BLOCKS,
    ),
    "convolutions": lambda: models.ConvSeq2Seq(
        11, num_layers=3, decoder_layers=2, hidden_dim=6, embedding_dim=5, learned_positions=17
    ),
    "wide convolutions": lambda: models.ConvSeq2Seq(
        11, 13, num_layers=1, hidden_dim=6, kernel_size=5, learned_positions=17, tie_output=True
    ),
}


@functools.cache
def made(name):
    """A model with random weights that no test may change."""
    return spread_weights(CASES[name]())


def check_padding(model, inputs, amounts=(6,), atol=2e-5):
    """The second row, of three tokens, gives the same alone as in a batch with more padding."""
    run = compiled(lambda inputs: model(inputs))
    alone = numpy(run({name: ids[1:, :3] for name, ids in inputs.items()}))
    for more in amounts:
        padded = {name: np.pad(ids, ((0, 0), (0, more))) for name, ids in inputs.items()}
        found = numpy(run(padded))
        assert found.shape[:2] == list(padded.values())[-1].shape
        np.testing.assert_allclose(found[1, :3], alone[0], atol=atol)


def losses_of(model, inputs, labels, ignore_class=None, **options):
    """Losses of epochs, with Keras' own `compile` and `fit`, and its own loss."""
    settings = {"from_logits": True, "ignore_class": ignore_class}
    loss = keras.losses.SparseCategoricalCrossentropy(**settings)
    model.compile(keras.optimizers.Adam(1e-2), loss)
    return model.fit(inputs, labels, verbose=0, **options).history["loss"]


def check_learns_of_sevens(encoder, epochs, **options):
    """A classifier learns whether there is a 7 among the tokens; one row is padding alone."""
    texts = np.random.default_rng(1).integers(3, 11, (256, 5)).astype("int32")
    texts[::3, 3:] = 0
    texts[7] = 0
    labels = (texts == 7).any(1).astype("int32")
    model = models.SequenceClassifier(encoder, 2, **options)
    losses = losses_of(model, {"token_ids": texts}, labels, epochs=epochs)
    assert losses[0] > 0.2
    assert losses[-1] < 0.1


def assert_judged(model, judge, atol):
    """Logits are those of a judge of one source and one target without padding."""
    found = logits(model)
    for row, (source, target) in enumerate([(5, 7), (3, 3)]):
        expected = judge(model, SOURCE[row, :source], TARGET[row, :target])
        np.testing.assert_allclose(found[row, :target], expected, atol=atol)


def descended(step, state, beams, as_index=int):
    """Steps of hypotheses that descend from parents at random, as a search's survivors do.

    Returns the tokens of the last hypotheses, and the logits of the steps that led to them.
    """
    rng = np.random.default_rng(1)
    state = take_rows(state, np.repeat([0, 1], beams))
    history, found = np.zeros((2 * beams, 0), "int32"), []
    for index in range(7):
        parents = np.add(rng.integers(0, beams, (2, beams)), [[0], [beams]]).ravel()
        token_ids = rng.integers(1, 11, 2 * beams).astype("int32")
        history = np.concatenate([history[parents], token_ids[:, None]], axis=1)
        found = [old[parents] for old in found]
        state = take_rows(state, parents)
        now, state = step(ops.convert_to_tensor(token_ids), state, as_index(index))
        found.append(numpy(now))
    return history, np.stack(found, axis=1)


def logits(model, source=SOURCE, target=TARGET):
    call = quick(lambda inputs: model(inputs))
    return numpy(call({"source_ids": np.asarray(source), "target_ids": np.asarray(target)}))
