"""What texts may not hold: against every text enumerated, and decoding in lists and tuples."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attn.generation import (
    Constraints,
    SamplingRules,
    beam_search,
    greedy_search,
    length_normalizer,
    sample,
)
from tests.backends import thinned
from tests.generation import naive_search
from tests.generation.comparison import assert_judged, assert_same_hypotheses, listed, searched
from tests.generation.toy_models import END, START, HashModel
from tests.harness import assert_close, assert_same
from tests.refusals import message_of, refused

MODEL = HashModel(5)
TABLES = MODEL.random_tables(np.random.default_rng(83), 41, end_bonus=-1.5)
PREFIXES = np.random.default_rng(89).choice([0, 1, 3, 4], (41, 3)).astype("int32")
PREFIXES[:, 1:] *= PREFIXES[:, :1] > 0
PREFIXES[:, 2:] *= PREFIXES[:, 1:2] > 0

RULES = [
    {"ngram": 1},
    {"ngram": 2},
    {"ngram": 3},
    {"banned": ((3,), (4, 4), (0, 1, 0), (1, END))},
    {"prefix": True},
    {"ngram": 2, "banned": ((3, 4), (1, 1)), "prefix": True},
]


def constraints(ngram=0, banned=(), prefix=False):
    return Constraints(ngram, banned, PREFIXES if prefix else None)


def keeping(row, prefix=False, **rules):
    wanted = tuple(token for token in PREFIXES[row].tolist() if token) if prefix else ()
    return functools.partial(naive_search.keeps, prefix=wanted, **rules)


def search(strategy, *arguments, tables=TABLES, **options):
    return searched(strategy, MODEL, tables, *arguments, **options)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_wide_beam_finds_the_best_of_all_sequences_that_keep_the_rules(rules):
    found = search(beam_search, 256, START, END, 5, n_best=7, constraints=constraints(**rules))
    dropped = 0
    for row, table in enumerate(TABLES[:17]):
        judged = naive_search.enumerate_all(
            MODEL.following(table), 5, END, 5, 0.6, is_kept=keeping(row, **rules)
        )
        assert_same_hypotheses(listed(found, row), judged[:7])
        free = naive_search.enumerate_all(MODEL.following(table), 5, END, 5, 0.6)
        dropped += free[:7] != judged[:7]
    assert dropped


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_narrow_beam_and_greedy_search_equal_plain_python(rules):
    beam = search(
        beam_search, 3, START, END, 8, n_best=2, constraints=constraints(**rules), min_length=4
    )
    greedy = search(greedy_search, START, END, 8, constraints=constraints(**rules), min_length=4)
    for row, table in enumerate(TABLES):
        judge, is_kept = MODEL.following(table), keeping(row, **rules)
        judged, _ = naive_search.beam(judge, END, 3, 8, 0.6, n_best=2, shortest=4, is_kept=is_kept)
        assert_same_hypotheses(listed(beam, row), judged)
        judged = naive_search.greedy(judge, END, 8, shortest=4, is_kept=is_kept)
        assert_same_hypotheses(listed(greedy, row), judged)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_samples_keep_the_rules(rules):
    options = {"seed": 3, "samples": 53}
    found = search(sample, START, END, 6, constraints=constraints(**rules), **options)
    free = search(sample, START, END, 6, **options)
    broken = 0
    for row, table in enumerate(TABLES):
        is_kept, judge = keeping(row, **rules), MODEL.following(table)
        for _, log_probability, text in listed(found, row):
            assert is_kept(text)
            total = sum(judge(text[:place])[token] for place, token in enumerate(text))
            assert_close(log_probability, total, rtol=1e-4, atol=1e-5)
        broken += sum(not is_kept(text) for _, _, text in listed(free, row))
    assert broken > 50


def test_the_most_probable_sample_is_constrained_greedy_search():
    rules = constraints(ngram=2, banned=((3, 4),), prefix=True)
    found = search(sample, START, END, 8, constraints=rules, seed=0, rules=SamplingRules(top_k=1))
    expected = search(greedy_search, START, END, 8, constraints=rules)
    assert_same(found.token_ids, expected.token_ids)
    assert_close(found.scores, expected.scores, rtol=1e-5)


def test_a_prefix_is_scored_as_the_model_scores_it():
    found = search(greedy_search, START, END, 5, constraints=Constraints(prefix_ids=PREFIXES))
    for row, prefix in enumerate(PREFIXES):
        count = np.count_nonzero(prefix)
        assert found.token_ids[row, 0, :count].tolist() == prefix[:count].tolist()
    assert {np.count_nonzero(prefix) for prefix in PREFIXES} == {0, 1, 2, 3}


@pytest.mark.parametrize("form", ["gnmt", "length"])
@pytest.mark.parametrize("stopping", ["exact", "early", "heuristic"])
@pytest.mark.parametrize("alpha", thinned([0.7, 0.0, 1.6], 3))
def test_stopping_and_length_penalty_equal_plain_python(form, stopping, alpha):
    tables = MODEL.random_tables(np.random.default_rng(97), 101, end_bonus=-0.5)
    options = {"length_penalty": alpha, "length_penalty_form": form, "stopping": stopping}
    found = search(beam_search, 3, START, END, 9, n_best=2, tables=tables, **options)
    others = 0
    for row, table in enumerate(tables):
        judged, _ = naive_search.beam(
            MODEL.following(table), END, 3, 9, alpha, n_best=2, stopping=stopping, form=form
        )
        assert_same_hypotheses(listed(found, row), judged)
        exact, _ = naive_search.beam(MODEL.following(table), END, 3, 9, alpha, n_best=2, form=form)
        others += exact != judged
    assert (others > 0) == (stopping != "exact")


def test_wide_beam_is_exact_with_the_other_length_penalty():
    options = {"length_penalty": 0.9, "length_penalty_form": "length"}
    found = search(beam_search, 256, START, END, 5, n_best=7, **options)

    def judge(table):
        after = MODEL.following(table)
        return naive_search.enumerate_all(after, 5, END, 5, 0.9, form="length")[:7]

    assert_judged(found, TABLES[:17], judge)


@pytest.mark.parametrize("strategy", [greedy_search, functools.partial(sample, seed=3)])
def test_scores_of_the_other_length_penalty(strategy):
    options = {"length_penalty": 0.9, "length_penalty_form": "length"}
    found = search(strategy, START, END, 6, **options)
    assert_close(found.scores, found.log_probabilities / found.lengths**0.9, rtol=1e-5)


def test_a_forced_end_may_be_free():
    longest = 4

    def with_free_end(table):
        usual = MODEL.following(table)

        def after(prefix):
            values = np.array(usual(prefix), "float64")
            if len(prefix) == longest - 1:
                values[END] = 0.0
            return values

        return after

    options = {"length_penalty": 0.9, "n_best": 3}
    found = search(beam_search, 64, START, END, longest, forced_end_is_free=True, **options)
    charged = search(beam_search, 64, START, END, longest, **options)
    assert_judged(
        found,
        TABLES[:17],
        lambda table: naive_search.enumerate_all(with_free_end(table), 5, END, longest, 0.9)[:3],
    )
    assert (np.asarray(found.scores) > np.asarray(charged.scores)).any()


def test_length_normalizer_of_the_other_form_by_hand():
    lengths = ops.convert_to_tensor([1, 4, 9])
    assert_close(length_normalizer(lengths, 1.5, form="length"), [1, 8, 27], rtol=1e-6)


def test_rules_that_leave_nothing():
    found = search(greedy_search, START, END, 4, constraints=Constraints(banned=((END,),)))
    assert not found.lengths.any()
    longer = np.full((41, 4), 3, "int32")
    found = search(beam_search, 3, START, END, 4, constraints=Constraints(prefix_ids=longer))
    assert not found.lengths.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"no_repeat_ngram": -1}, "0 for no rule. Received: no_repeat_ngram=-1."),
        ({"no_repeat_ngram": 2.0}, "Received: no_repeat_ngram=2.0."),
        ({"banned": ((3,), ())}, "none of them empty. Received: sequence=()."),
        ({"banned": ((3, -4),)}, "Received: sequence=(3, -4)."),
        ({"banned": (3,)}, "`banned` must contain sequences of token ids"),
        ({"banned": ((3, 7),)}, "size of the logits. Received: largest=7, vocabulary=5."),
        (
            {"prefix_ids": np.ones((7, 2), "int32")},
            "`prefix_ids` must have one row for each source. Received: shape=(7, 2), sources=41.",
        ),
        ({"prefix_ids": np.ones(41, "int32")}, "Received: shape=(41,), sources=41."),
    ],
)
def test_mistakes_in_constraints(arguments, message):
    def run(**arguments):
        return search(greedy_search, START, END, 4, constraints=Constraints(**arguments))

    assert message in message_of(run, **arguments)


@pytest.mark.parametrize(
    ("name", "given", "names", "meant"),
    [
        ("stopping", "earlier", "'exact', 'early', 'heuristic'", "early"),
        ("length_penalty_form", "lenght", "'gnmt', 'length'", "length"),
    ],
)
def test_mistakes_in_names(name, given, names, meant):
    assert message_of(search, beam_search, 2, START, END, 4, **{name: given}) == (
        f"`{name}` must be one of {names}. Did you mean '{meant}'? Received: {name}='{given}'."
    )


@pytest.mark.parametrize("rows", [1, 82])  # all rows of the beam could be shared out among them
def test_prefixes_are_not_shared_out_among_sources(rows):
    options = {"constraints": Constraints(prefix_ids=np.ones((rows, 2), "int32"))}
    message = rf"Received: shape=\({rows}, 2\), sources=41."
    refused(message, search, beam_search, 2, START, END, 4, **options)
