"""One tiny model of each kind, and what their tests share."""

import functools

import numpy as np
from keras import ops

from keras_attn.generation.decoder_state import take_rows
from keras_attn.layers import LuongAttention, MultiHeadAttention
from keras_attn.models import (
    GNMT,
    T5,
    ConvSeq2Seq,
    Marian,
    RecurrentSeq2Seq,
    SynthesizerTransformer,
)
from tests.backends import quick
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
_BLOCKS = {"num_layers": 2, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}
_T5 = _BLOCKS | {"key_dim": 5, "num_buckets": 8, "max_distance": 6}
CASES = {
    **{
        name: lambda given=given: RecurrentSeq2Seq(11, **({"hidden_dim": 6} | given))
        for name, given in RECURRENT.items()
    },
    "GNMT": lambda: GNMT(11, num_layers=4, hidden_dim=6, attention_units=5),
    "GNMT, one layer": lambda: GNMT(11, 13, num_layers=1, hidden_dim=6, tie_output=True),
    "synthesizers": lambda: SynthesizerTransformer(
        11, scores=("dense", "dot_product"), max_length=19, **_BLOCKS
    ),
    "fixed random scores": lambda: SynthesizerTransformer(
        11, 13, scores="fixed_random", max_length=19, **_BLOCKS
    ),
    "T5": lambda: T5(11, **_T5),
    "T5, version 1.1": lambda: T5(
        11, 13, decoder_layers=1, activation="gelu_tanh", gated=True, tie_output=False, **_T5
    ),
    "Marian": lambda: Marian(11, **_BLOCKS),
    "Marian, unlike sides": lambda: Marian(
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
    "convolutions": lambda: ConvSeq2Seq(
        11, num_layers=3, decoder_layers=2, hidden_dim=6, embedding_dim=5, learned_positions=17
    ),
    "wide convolutions": lambda: ConvSeq2Seq(
        11, 13, num_layers=1, hidden_dim=6, kernel_size=5, learned_positions=17, tie_output=True
    ),
}


@functools.cache
def made(name):
    """A model with random weights that no test may change."""
    return spread_weights(CASES[name]())


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
