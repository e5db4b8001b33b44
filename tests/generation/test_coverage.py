"""The coverage penalty, with a model that looks about at random."""

from functools import partial

import numpy as np
import pytest
from keras import ops

from keras_attn.generation import beam_search
from tests.generation import naive_search
from tests.generation.comparison import assert_same_hypotheses, listed, searched
from tests.generation.toy_models import END, START, HashModel, log_softmax
from tests.refusals import refused

VOCABULARY, SOURCE = 5, 3


class LookingModel(HashModel):
    """Each step attends to the source by the softmax of the first of its logits.

    The last position of a source's is padding where its table says so by a first logit above 0.
    """

    def initial_state(self, tables):
        state = super().initial_state(tables)
        padding = ops.cast(tables[:, 0, 0] > 0, "float32")
        real = ops.zeros((ops.shape(tables)[0], SOURCE - 1), "float32")
        state["hypothesis"]["coverage"] = ops.concatenate([real, padding[:, None]], axis=1)
        return state

    def step(self, token_ids, state, index):
        coverage = state["hypothesis"]["coverage"]
        logits, state = super().step(token_ids, state, index)
        attention = ops.softmax(3.0 * logits[:, :SOURCE])
        hypothesis = state["hypothesis"] | {"coverage": coverage + attention}
        return logits, state | {"hypothesis": hypothesis}

    def penalty(self, table, text, beta):
        """By equation 14 of Wu et al., 2016."""
        total = np.array([0.0, 0.0, table[0, 0] > 0])
        for position in range(len(text)):
            logits = self.logits(table, text[:position])
            total += np.exp(log_softmax(3.0 * logits[:SOURCE]))
        return beta * np.log(np.minimum(total, 1.0)).sum()


MODEL = LookingModel(VOCABULARY)


def found_and_judged(beams, judge, beta, count=23, **options):
    tables = MODEL.random_tables(np.random.default_rng(11), count, end_bonus=1.0)
    options |= {"coverage_penalty": beta}
    found = searched(beam_search, MODEL, tables, beams, START, END, 4, **options)
    for row, table in enumerate(tables):
        following = partial(MODEL.log_probabilities, table)
        yield listed(found, row), judge(following, partial(MODEL.penalty, table, beta=beta))


@pytest.mark.parametrize("beta", [0.0, 0.2, 2.0])
def test_a_wide_beam_finds_the_best_of_all(beta):
    def judge(following, bonus):
        return naive_search.enumerate_all(following, VOCABULARY, END, 4, 0.6, bonus=bonus)

    lengths = []
    for found, judged in found_and_judged(64, judge, beta, n_best=5):
        assert_same_hypotheses(found, judged[:5])
        lengths.append(len(found[0][2]))
    # Who is to look at everything is not brief.
    assert (np.mean(lengths) > 3) == (beta == 2.0)
    assert (np.mean(lengths) < 2) == (beta == 0.0)


@pytest.mark.parametrize("stopping", ["exact", "early", "heuristic"])
def test_a_narrow_beam_equals_plain_python(stopping):
    def judge(following, bonus):
        options = {"n_best": 2, "stopping": stopping, "bonus": bonus}
        return naive_search.beam(following, END, 3, 4, 0.6, **options)[0][:2]

    for found, judged in found_and_judged(3, judge, 0.7, n_best=2, stopping=stopping):
        assert_same_hypotheses(found, judged)


def test_mistakes():
    tables = MODEL.random_tables(np.random.default_rng(1), 2)
    state = MODEL.initial_state(ops.convert_to_tensor(tables))
    search = partial(beam_search, MODEL.step, beams=2, start_id=START, end_id=END, max_length=4)
    for penalty in (-1.0, float("nan"), "much"):
        message = "`coverage_penalty` must be a finite number"
        refused(message, search, state, coverage_penalty=penalty)
    state = HashModel(VOCABULARY).initial_state(ops.convert_to_tensor(tables))
    message = r"needs `state\['hypothesis'\]\['coverage'\]`"
    refused(message, search, state, coverage_penalty=1.0)
