"""CompressiveTransformer: what it remembers, what it learns, and decoding past its window."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search
from keras_attn.models import CausalTransformer, CompressiveTransformer
from tests.generation.comparison import as_numpy
from tests.generation.toy_models import compiled
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import SMALL
from tests.refusals import refusals

SIZES = SMALL | {
    "segment_length": 4,
    "memory_length": 3,
    "compressed_length": 2,
    "compression_rate": 2,
}
STREAM = np.random.default_rng(1).integers(1, 11, (2, 37)).astype("int32")


def built(**arguments):
    return spread_weights(CompressiveTransformer(11, **(SIZES | arguments)))


def whole_of(model):
    return compiled(lambda token_ids: model({"token_ids": token_ids}))


@pytest.mark.parametrize("compressed_length", [0, 2])
def test_it_sees_as_far_back_as_its_memories_reach(compressed_length):
    model = built(compressed_length=compressed_length, num_layers=1)
    run = whole_of(model)
    whole = numpy(run(STREAM))
    last = 36  # the first of its segment
    reach = 3 + (2 * 2 if compressed_length else 0)
    for place in range(26, 36):
        changed = STREAM.copy()
        changed[:, place] = changed[:, place] % 10 + 1
        moved = np.abs(numpy(run(changed))[:, last] - whole[:, last]).max()
        # Three states as they are, before them two slots of two states each.
        assert (moved > 1e-5) == (place >= last - reach), place


def test_layers_add_up_what_they_see():
    model = built(compressed_length=0)
    run = whole_of(model)
    changed = STREAM.copy()
    changed[:, 31] = changed[:, 31] % 10 + 1  # further back than one memory
    moved = np.abs(numpy(run(changed)) - numpy(run(STREAM))).max((0, 2))
    assert not moved[:31].any()
    assert moved[36] > 1e-5


def test_a_memory_of_everything_is_a_causal_transformer():
    model = built(compressed_length=0, memory_length=40)
    attention = model.blocks[0].self_attention.attention
    judge = CausalTransformer(
        11,
        2,
        12,
        3,
        17,
        absolute_positions=False,
        self_attention=keras.saving.deserialize_keras_object(
            {
                "module": "keras_attn.layers",
                "class_name": "MultiHeadAttention",
                "registered_name": "keras_attn>MultiHeadAttention",
                "config": {
                    name: value
                    for name, value in attention.get_config().items()
                    if name not in ("memory_length", "name")
                },
            }
        ),
    )
    judge.set_weights([numpy(weight) for weight in model.weights])
    np.testing.assert_allclose(
        numpy(whole_of(model)(STREAM)), numpy(whole_of(judge)(STREAM)), atol=2e-5
    )


@pytest.mark.parametrize("compressed_length", [0, 2])
def test_steps_far_beyond_the_window_equal_the_whole(compressed_length):
    model = built(compressed_length=compressed_length, norm_first=True)
    expected = numpy(whole_of(model)(STREAM))
    step = compiled(model.step) if keras.backend.backend() == "jax" else model.step
    prompts = np.zeros((2, 9), "int32")
    for row, length in enumerate((9, 2)):
        prompts[row, :length] = STREAM[row, :length]
    token_ids, state = compiled(lambda ids: model.prefill(ids, 30))(prompts)
    for index in range(28):
        found, state = step(token_ids, state, index)
        at = np.array([8, 1]) + index
        np.testing.assert_allclose(numpy(found), expected[[0, 1], at], atol=5e-5)
        token_ids = ops.convert_to_tensor(STREAM[[0, 1], at + 1])


@pytest.mark.slow
def test_beams_keep_memories_of_their_own():
    model = built(norm_first=True)
    prompts = STREAM[:, :3]

    def search(prompt_ids):
        start_ids, state = model.prefill(prompt_ids, 11, 3)
        return beam_search(model.step, state, 3, start_ids, 2, 11, min_length=11, n_best=3)

    found = as_numpy(compiled(search)(ops.convert_to_tensor(prompts)))
    run = whole_of(model)
    for row in range(2):
        for beam in range(3):
            tokens = found.token_ids[row, beam]
            text = np.concatenate([prompts[row], tokens])[None, :-1]
            rows = numpy(run(text))[0, 2:]
            log_probabilities = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
            expected = log_probabilities[range(len(tokens)), tokens].sum()
            assert found.log_probabilities[row, beam] == pytest.approx(expected, abs=2e-4)


def test_what_a_compression_learns():
    model = built()
    model({"token_ids": STREAM}, training=True)
    assert len(model.losses) == 2
    assert all(float(loss) > 0 for loss in model.losses)
    assert not built(compression="mean").losses


test_what_cannot_be_made = refusals(
    built,
    ({"compressed_length": -1}, "`compressed_length` must not be negative"),
    ({"compression": "most_used"}, "used most"),
    ({"compression_rate": 5}, "segment_length=4, compression_rate=5"),
    ({"num_heads": 5}, "`num_heads` must divide `hidden_dim`"),
    ({"num_heads": 0}, "`num_heads` must be"),
)
