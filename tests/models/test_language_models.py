"""Decoder-only models: what sees what, and decoding after prompts."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import layers
from keras_attn.generation import beam_search, greedy_search
from keras_attn.models import GPT2, CausalTransformer, CompressiveTransformer, Reformer
from keras_attn.validation import UserError
from tests.backends import named, thinned
from tests.generation import naive_search
from tests.generation.comparison import as_numpy, assert_same_hypotheses, listed
from tests.generation.toy_models import compiled, log_softmax
from tests.harness import numpy
from tests.layers.judges import spread_weights
from tests.models.families import losses_of
from tests.refusals import refused

START, END = 1, 2
SIZES = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 17}
PROMPTS = np.array([[1, 7, 3, 9, 5], [1, 6, 0, 0, 0], [1, 0, 0, 0, 0]], "int32")
LENGTHS = [5, 2, 1]
VARIANTS = {
    "post-norm": {},
    "pre-norm, learned and rotary": {
        "norm_first": True,
        "learned_positions": 13,
        "rotary_positions": True,
    },
    "relative, window": {
        "self_attention": layers.MultiHeadAttention(
            2, 3, sliding_window=4, relative_positions=layers.RelativePositionBias(2, 8, 5)
        )
    },
    "local": {
        "self_attention": layers.LocalAttention(
            2, 4, 3, relative_positions=layers.RotaryEmbedding()
        )
    },
    "linear": {"self_attention": layers.LinearAttention(2, 3)},
    "LSH": {"self_attention": layers.LSHAttention(2, 3, 4, chunk_length=3, seed=1)},
    "dense synthesizer": {"self_attention": layers.DenseSynthesizer(2, 3, 13)},
    "mixture": {
        "self_attention": layers.SynthesizerMixture(2, 3, 15, members=("random", "dot_product"))
    },
    "compressive": {
        "family": CompressiveTransformer,
        "segment_length": 3,
        "memory_length": 2,
        "compressed_length": 2,
        "compression_rate": 2,
    },
    "GPT-2": {"family": GPT2, "max_length": 13},
    "reformer": {"family": Reformer, "num_buckets": 4, "num_hashes": 2, "chunk_length": 3},
}
ON_JAX = ("post-norm", "local", "linear", "LSH", "compressive", "GPT-2")
SOME = named(VARIANTS, ON_JAX, others=2)
SLOW = [pytest.mark.slow]
# Of which caches that grow do not take ten seconds.
GROWS_QUICKLY = ("post-norm", "relative, window", "linear")
# Caches of a fixed length, and caches that grow.
ROOMS = [9, None] if keras.backend.backend() == "tensorflow" else [9]


def built(vocabulary_size=11, family=CausalTransformer, **arguments):
    return spread_weights(family(vocabulary_size, **(SIZES | arguments)))


def whole_of(model):
    """The model as a compiled function: on JAX each operation by itself would cost a second."""
    return compiled(lambda token_ids: model({"token_ids": token_ids}))


def step_of(model):
    """The model's step, compiled where caches do not grow."""
    return compiled(model.step) if keras.backend.backend() == "jax" else model.step


def following(model, prompt):
    """Log-probabilities of the next token by the whole forward pass, for the judges."""
    whole = whole_of(model)

    def next_log_probabilities(prefix):
        token_ids = np.zeros((1, 13), "int32")
        length = len(prompt) + len(prefix)
        token_ids[0, :length] = [*prompt, *prefix]
        return log_softmax(numpy(whole(token_ids))[0, length - 1])

    return next_log_probabilities


def test_shapes_and_one_table():
    model = built(norm_first=True)
    assert model.output_shape == (None, None, 11)
    assert tuple(model({"token_ids": PROMPTS}).shape) == (3, 5, 11)
    tables = [weight for weight in model.weights if weight.path.endswith("embeddings")]
    assert [tuple(table.shape) for table in tables] == [(11, 12)]
    # 11 tokens; a block has an attention, a feed-forward network and two norms; a norm at the end.
    block = 4 * (12 * 12 + 12) + 12 * 17 + 17 + 17 * 12 + 12 + 2 * 24
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    assert trainable == 11 * 12 + 2 * block + 24


@pytest.mark.parametrize("name", SOME)
def test_nothing_that_follows_changes_anything_before(name):
    """Neither other tokens nor padding."""
    token_ids = np.array([[1, 4, 8, 6, 3, 9, 5]], "int32")
    changed = np.array([[1, 4, 8, 6, 10, 7, 0]], "int32")
    padded = np.array([[1, 4, 8, 6, 0, 0, 0]], "int32")
    run = whole_of(built(**VARIANTS[name]))
    whole, found, alone = (numpy(run(ids)) for ids in (token_ids, changed, padded))
    np.testing.assert_array_equal(found[:, :4], whole[:, :4])
    np.testing.assert_allclose(alone[:, :4], whole[:, :4], atol=2e-5)
    assert (np.abs(found[:, 4:] - whole[:, 4:]).max(-1) > 1e-4).all()


@pytest.mark.parametrize(
    ("name", "max_length"),
    [pytest.param(name, ROOMS[0], marks=[] if name in ON_JAX else SLOW) for name in VARIANTS]
    + [
        pytest.param(name, room, marks=[] if name in GROWS_QUICKLY else SLOW)
        for name in VARIANTS
        for room in ROOMS[1:]
    ],
)
def test_steps_after_prompts_equal_the_whole(name, max_length):
    model = built(**VARIANTS[name])
    rest = np.random.default_rng(1).integers(1, 11, (3, 6)).astype("int32")
    texts = np.zeros((3, 13), "int32")
    for row, length in enumerate(LENGTHS):
        texts[row, : length + 6] = [*PROMPTS[row, :length], *rest[row]]
    expected, step = numpy(whole_of(model)(texts)), step_of(model)
    token_ids, state = compiled(lambda ids: model.prefill(ids, max_length))(PROMPTS)
    np.testing.assert_array_equal(numpy(token_ids), [5, 6, 1])
    for index in range(6):
        logits, state = step(token_ids, state, index)
        positions = np.add(LENGTHS, index - 1)
        np.testing.assert_allclose(numpy(logits), expected[range(3), positions], atol=3e-5)
        token_ids = ops.convert_to_tensor(rest[:, index])


def test_a_prompt_is_what_its_tokens_are_one_by_one():
    model = built(**VARIANTS["pre-norm, learned and rotary"])
    state, step = model.initial_state(3, 9), step_of(model)
    for index in range(5):  # a row that has come to its end is fed its last token again
        position = np.minimum(index, np.subtract(LENGTHS, 1)).astype("int32")
        expected, state = step(PROMPTS[range(3), position], state, position)
    last, state = compiled(lambda ids: model.prefill(ids, 9))(PROMPTS)
    found, _ = step(last, state, 0)
    np.testing.assert_allclose(numpy(found), numpy(expected), atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        *thinned(["post-norm", "mixture", "local", "linear"]),
        pytest.param("reformer", marks=pytest.mark.slow),
    ],
)
def test_greedy_after_prompts_equals_the_uncached(name):
    model = built(**VARIANTS[name])

    def search(prompt_ids):
        start_ids, state = model.prefill(prompt_ids, ROOMS[-1])
        return greedy_search(model.step, state, start_ids, END, 9, min_length=4, forbidden_ids=(0,))

    found = as_numpy(compiled(search)(ops.convert_to_tensor(PROMPTS)))
    for row, length in enumerate(LENGTHS):
        judge = following(model, PROMPTS[row, :length])
        expected = naive_search.greedy(judge, END, 9, shortest=4, forbidden=(0,))
        assert_same_hypotheses(listed(found, row), expected)


@pytest.mark.parametrize(
    ("name", "max_length"),
    [("post-norm", ROOMS[-1] and 4), ("post-norm", 4), ("linear", 4), ("mixture", 4)],
)
def test_a_wide_beam_after_prompts_finds_the_best_of_all(name, max_length):
    model = built(5, **VARIANTS[name])
    prompts = np.array([[1, 3, 4, 1], [1, 4, 0, 0]], "int32")

    def search(prompt_ids):
        # 27 hold every prefix of three of the tokens 1, 3 and 4; one to spare.
        start_ids, state = model.prefill(prompt_ids, max_length, beams=28)
        return beam_search(model.step, state, 28, start_ids, END, 4, n_best=7, forbidden_ids=(0,))

    found = as_numpy(compiled(search)(ops.convert_to_tensor(prompts)))
    for row, length in enumerate((4, 2)):
        judge = following(model, prompts[row, :length])
        expected = naive_search.enumerate_all(judge, 5, END, 4, 0.6, forbidden=(0,))
        assert_same_hypotheses(listed(found, row), expected[:7])


def test_what_is_of_the_prompt_is_held_once():
    model = built()
    _, state = model.prefill(PROMPTS, 7, beams=3)
    shapes = [tuple(cache.key.shape) for cache in state["source"]["caches"]]
    assert shapes == [(3, 3, 5 + 7 * 3, 4)] * 2


def test_from_nothing():
    model = built()
    state = model.initial_state(2, 9)
    found = as_numpy(greedy_search(model.step, state, START, END, 9, forbidden_ids=(0,)))
    expected = naive_search.greedy(following(model, (START,)), END, 9, forbidden=(0,))
    for row in range(2):
        assert_same_hypotheses(listed(found, row), expected)


def test_rows_may_be_at_positions_of_their_own_after_prompts():
    model = built(rotary_positions=True)
    target = np.random.default_rng(1).integers(3, 11, (3, 6)).astype("int32")
    _, state = compiled(lambda ids: model.prefill(ids, 7))(PROMPTS)
    target[:, 0] = [5, 6, 1]
    texts = np.zeros((3, 11), "int32")
    for row, length in enumerate(LENGTHS):
        texts[row, : length + 5] = [*PROMPTS[row, :length], *target[row, 1:]]
    expected, step = numpy(whole_of(model)(texts)), step_of(model)
    for index in range(8):  # the last row is two positions late
        position = np.array([min(index, 5), min(index, 5), max(index - 2, 0)], "int32")
        logits, state = step(target[range(3), position], state, position)
        at = np.add(LENGTHS, position - 1)
        np.testing.assert_allclose(numpy(logits), expected[range(3), at], atol=3e-5)


@pytest.mark.parametrize("learned", [None, 307])
def test_bfloat16_past_position_256(learned):
    """A prompt and steps after it round as the whole does, and tell late positions apart."""
    model = CausalTransformer(
        11, learned_positions=learned, dtype="mixed_bfloat16", **(SIZES | {"num_layers": 1})
    )
    token_ids = np.full((1, 300), 4, "int32")  # one token over and over: only positions tell
    logits = whole_of(model)(token_ids)
    assert keras.backend.standardize_dtype(logits.dtype) == "bfloat16"
    expected = numpy(logits).astype("float32")[0]
    assert np.isfinite(expected).all()
    assert len(np.unique(expected[256:], axis=0)) > 22
    last, state = compiled(lambda ids: model.prefill(ids, 11))(token_ids[:, :290])
    step = step_of(model)
    for index in range(11):
        logits, state = step(last, state, index)
        found = numpy(logits).astype("float32")[0]
        np.testing.assert_allclose(found, expected[289 + index], atol=0.06)


def test_presets_have_no_weights():
    assert "randomly initialized" in CausalTransformer.from_preset.__doc__.partition("\n")[0]
    with pytest.raises(UserError, match="Presets have no weights.*load_weights=True"):
        CausalTransformer.from_preset("lm_tiny", 11, load_weights=True)


def test_from_preset():
    model = CausalTransformer.from_preset("lm_tiny", 11, num_layers=1)
    config = model.get_config()
    assert (config["hidden_dim"], config["num_layers"]) == (128, 1)
    refused("`preset` must be one of 'lm_tiny'.", CausalTransformer.from_preset, "g2p_small", 11)


def test_mistakes_are_told():
    attention = layers.GlobalLocalAttention(2, 3, 2, 2)
    refused("Received: self_attention='GlobalLocalAttention'", built, self_attention=attention)
    model = built(self_attention=layers.RandomSynthesizer(2, 3, 13))
    refused("prompts=5, max_length=10, positions=13", model.prefill, PROMPTS, 10)
    assert built(learned_positions=7).max_length == 7
    model = built(self_attention=keras.layers.MultiHeadAttention(2, 3))
    refused("self_attention='MultiHeadAttention'", model.initial_state, 2, 7)
    with pytest.raises(UserError, match="Received: tokens=2, sources=3, beams=1"):
        built().step([4, 5], built().prefill(PROMPTS, 7)[1], 0)


def test_attention_without_prompts_is_told_where_decoding_begins():
    model = built(self_attention=StepsAlone(2, 3))
    model.initial_state(2, 7)
    refused("`attend_prompt`. Received: self_attention='StepsAlone'", model.prefill, PROMPTS, 7)


class StepsAlone(layers.MultiHeadAttention):
    attend_prompt = property(doc="Not there.")


def test_fit_learns_to_count():
    """With Keras' own `compile` and `fit`, and its own loss: no other package is needed."""
    model = CausalTransformer(11, **(SIZES | {"num_layers": 1, "norm_first": True}))
    rng = np.random.default_rng(1)
    words = (rng.integers(0, 8, (128, 1)) + np.arange(7)) % 8 + 3
    token_ids, labels = words[:, :-1].astype("int32"), words[:, 1:].astype("int32")
    history = losses_of(model, {"token_ids": token_ids}, labels, epochs=12)
    assert history[0] > 1.5
    assert history[-1] < 0.3
