"""Reads what a strategy returned and holds it against a judge's list."""

import numpy as np
from keras import ops

from tests.generation.toy_models import compiled


def as_numpy(found):
    return type(found)(*(ops.convert_to_numpy(part) for part in found))


def searched(strategy, model, inputs, *arguments, **options):
    """What a strategy finds in a compiled graph."""

    def run(inputs):
        return strategy(model.step, model.initial_state(inputs), *arguments, **options)

    return as_numpy(compiled(run)(inputs))


def listed(found, row):
    """The hypotheses of a source as (score, log-probability, tokens), those that exist."""
    result = []
    for rank in range(found.scores.shape[1]):
        length = found.lengths[row, rank]
        tokens = found.token_ids[row, rank]
        assert not tokens[length:].any()
        if found.scores[row, rank] == -np.inf:
            assert length == 0
            assert found.log_probabilities[row, rank] == -np.inf
            continue
        text = tuple(int(token) for token in tokens[:length])
        result.append((found.scores[row, rank], found.log_probabilities[row, rank], text))
    return result


def assert_judged(found, sources, judge):
    """The hypotheses of every source are those that the judge lists for it."""
    for row, source in enumerate(sources):
        assert_same_hypotheses(listed(found, row), judge(source))


def assert_same_hypotheses(received, expected):
    assert [text for _, _, text in received] == [text for _, _, text in expected]
    np.testing.assert_allclose(
        [entry[:2] for entry in received], [entry[:2] for entry in expected], rtol=1e-5, atol=1e-5
    )
