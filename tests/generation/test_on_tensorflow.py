"""What only TensorFlow can do or get wrong: unknown shapes, XLA, the ops in the graph."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attn.generation import Constraints, SamplingRules, beam_search, greedy_search, sample
from tests.generation import naive_search
from tests.generation.comparison import as_numpy, assert_judged, assert_same_hypotheses, listed
from tests.generation.toy_models import END, START, HashModel, compiled

pytestmark = pytest.mark.tensorflow

MODEL = HashModel(5)
TABLES = MODEL.random_tables(np.random.default_rng(61), 13)


def beam(tables, max_length=7, step=MODEL.step):
    state = MODEL.initial_state(tables)
    return beam_search(step, state, 3, START, END, max_length, n_best=2, forbidden_ids=(0,))


def greedy(tables, max_length=7, step=MODEL.step):
    return greedy_search(step, MODEL.initial_state(tables), START, END, max_length)


def draw(tables, max_length=7, step=MODEL.step, rules=None):
    rules = rules or SamplingRules(0.9, top_p=0.8, repetition_penalty=1.2)
    state = MODEL.initial_state(tables)
    return sample(step, state, START, END, max_length, seed=3, samples=2, rules=rules)


def draw_of_few(tables, max_length=7, step=MODEL.step):
    return draw(tables, max_length, step, SamplingRules(top_k=3))


def constrained_beam(tables, max_length=7, step=MODEL.step):
    prefix_ids = ops.convert_to_tensor([[3, 0]] * 13, "int32")[: ops.shape(tables)[0]]
    options = {"constraints": Constraints(2, ((4, 3),), prefix_ids), "stopping": "heuristic"}
    return beam_search(step, MODEL.initial_state(tables), 3, START, END, max_length, **options)


STRATEGIES = [beam, greedy, draw, draw_of_few, constrained_beam]


def op_types(concrete):
    definition = concrete.graph.as_graph_def()
    types = {node.op for node in definition.node}
    for function in definition.library.function:
        types |= {node.op for node in function.node_def}
    return types


def signature(*more):
    import tensorflow as tf

    return [tf.TensorSpec((None, *TABLES.shape[1:]), "float32"), *more]


def assert_close(received, expected):
    for one, other in zip(as_numpy(received), as_numpy(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_unknown_batch_size(strategy, jit_compile):
    run = compiled(strategy, input_signature=signature(), jit_compile=jit_compile)
    for rows in (13, 1):
        assert_close(run(TABLES[:rows]), strategy(ops.convert_to_tensor(TABLES[:rows])))
    assert run.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_maximum_length_as_a_tensor(strategy):
    import tensorflow as tf

    run = compiled(strategy, input_signature=signature(tf.TensorSpec((), "int32")))
    for max_length in (2, 7):
        expected = strategy(ops.convert_to_tensor(TABLES), max_length)
        assert expected.token_ids.shape[2] == max_length
        assert_close(run(TABLES, max_length), expected)
    types = op_types(run.get_concrete_function())
    assert "StatelessWhile" in types or "While" in types
    assert not [name for name in types if name.startswith("Xla") or "PyFunc" in name]


def test_constraints_that_are_off_add_no_op():
    def concrete(**options):
        def run(tables):
            return beam_search(MODEL.step, MODEL.initial_state(tables), 3, 1, 2, 7, **options)

        return compiled(run, input_signature=signature()).get_concrete_function()

    def op_count(**options):
        definition = concrete(**options).graph.as_graph_def()
        functions = sum(len(function.node_def) for function in definition.library.function)
        return len(definition.node) + functions

    assert op_count(constraints=Constraints()) == op_count() < op_count(constraints=Constraints(2))
    assert "ScatterNd" not in op_types(concrete())
    assert "ScatterNd" in op_types(concrete(constraints=Constraints(2)))


def test_a_cache_that_grows():
    """A hypothesis leaf of unknown length, longer with each step, as decoders' caches may be."""
    import tensorflow as tf

    def initial_state(tables):
        state = MODEL.initial_state(tables)
        empty = tf.zeros((tf.shape(tables)[0], tf.shape(tables)[0] * 0), "int32")
        state["hypothesis"]["tokens"] = empty
        return state

    def step(token_ids, state, index):
        tokens = tf.concat([state["hypothesis"].pop("tokens"), token_ids[:, None]], axis=1)
        logits, state = MODEL.step(token_ids, state, index)
        state["hypothesis"]["tokens"] = tokens
        # A token already in the text of this hypothesis is ruled out.
        seen = tf.reduce_any(tf.one_hot(tokens, 5, on_value=True, off_value=False), axis=1)
        return tf.where(seen, -np.inf, logits), state

    def next_log_probabilities(table, prefix):
        table = table.copy()
        table[:, [START, *prefix]] = -np.inf
        return MODEL.log_probabilities(table, prefix)

    run = compiled(
        lambda tables: beam_search(step, initial_state(tables), 3, START, END, 4, n_best=3),
        input_signature=signature(),
    )
    found = as_numpy(run(TABLES))

    def judge(table):
        after = functools.partial(next_log_probabilities, table)
        return naive_search.beam(after, END, 3, 4, 0.6, 3)[0]

    assert_judged(found, TABLES, judge)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_that_loses_the_static_count_of_rows(strategy):
    import tensorflow as tf

    def step(token_ids, state, index):
        logits, state = MODEL.step(token_ids, state, index)
        return tf.ensure_shape(tf.boolean_mask(logits, token_ids >= 0), (None, 5)), state

    run = compiled(lambda tables: strategy(tables, step=step))
    assert_close(run(tf.constant(TABLES)), strategy(ops.convert_to_tensor(TABLES)))


def test_stops_as_soon_as_no_beam_can_win():
    steps = []

    def step(token_ids, state, index):
        steps.append(int(index))
        return MODEL.step(token_ids, state, index)

    early = 0
    for table in TABLES:
        steps.clear()
        found = beam(ops.convert_to_tensor(table[None]), step=step)
        judged, positions = naive_search.beam(
            MODEL.following(table), END, 3, 7, 0.6, n_best=2, forbidden=(0,), stop_early=True
        )
        assert_same_hypotheses(listed(as_numpy(found), 0), judged)
        assert steps == list(range(positions))
        early += positions < 7
    assert early > 3
    steps.clear()
    found = greedy(ops.convert_to_tensor(TABLES[:3]), step=step)
    assert steps == list(range(int(ops.max(found.lengths))))


def test_float64_states_are_scored_in_float64():
    tables = TABLES.astype("float64")
    for strategy in STRATEGIES:
        found = as_numpy(strategy(ops.convert_to_tensor(tables)))
        assert found.scores.dtype == found.log_probabilities.dtype == np.float64
        for row, table in enumerate(tables):
            total, prefix = 0.0, ()
            for token in found.token_ids[row, 0, : found.lengths[row, 0]].tolist():
                total += MODEL.log_probabilities(table, prefix)[token]
                prefix = (*prefix, token)
            np.testing.assert_allclose(found.log_probabilities[row, 0], total, rtol=1e-13)


@pytest.mark.parametrize("strategy", [beam_search, greedy_search])
def test_xla_takes_the_best_tokens_without_sorting_the_vocabulary(strategy):
    """A sort of the logits costs a hundred times the rest of a step's search."""
    import tensorflow as tf

    vocabulary = 997

    def run(logits):
        def step(token_ids, state, index):
            rows = tf.cast(token_ids, "float32")[:, None]
            return state["source"][0] * rows, state

        state = {"source": logits, "hypothesis": logits[:, 0]}
        beams = {"beams": 3} if strategy is beam_search else {}
        found = strategy(
            step, state, start_id=START, end_id=END, max_length=5, forbidden_ids=(0, 1), **beams
        )
        return found.token_ids

    run = tf.function(run, jit_compile=True)
    logits = tf.constant(np.random.default_rng(67).normal(size=(2, vocabulary)), "float32")
    program = run.experimental_get_compiler_ir(logits)(stage="optimized_hlo")
    assert 'custom_call_target="TopK"' in program
    sorts = [line for line in program.splitlines() if " sort(" in line]
    assert not [line for line in sorts if f",{vocabulary}]" in line]
