"""Runs of tasks from queries and passages to scores."""

from typing import ClassVar

import numpy as np

from keras_attn.data import Pairs, RankedExamples, RankedPassages, read_ranked_passages
from keras_attn.data.ranked_passages import RELEVANCE, ROLES, mistake_of_passage
from keras_attn.evaluation.ranking import RANKING, ranked_relevances, reciprocal_rank
from keras_attn.tasks import RankTask
from keras_attn.tasks.measuring.rankings import OTHERS, ranking_scores, scores_of
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.run_texts import hold_out_pairs, reported
from keras_attn.training.task_runs.heads import HeadRun
from keras_attn.validation import require

_SIZE = 8  # passages in a list
_SHOWN = 4


class RankRun(HeadRun):
    """Trains an encoder and a head on passages of queries.

    Rows are read without a cache: the passages of a query are looked for in all of them.
    """

    task_class = RankTask
    columns = ROLES
    optional_columns = (RELEVANCE,)
    mistake = staticmethod(mistake_of_passage)
    known_data: ClassVar = {}
    known_metrics = RANKING
    items = "queries"
    long_texts = ("cut",)
    independent_rows = False
    ranks = True

    def check(self, settings):
        super().check(settings)
        self.refuse_consistency(settings)
        require(
            settings.training.label_smoothing == 0,
            "Ranks are not smoothed: `training.label_smoothing` must be 0.",
            label_smoothing=settings.training.label_smoothing,
        )

    def default_metrics(self, data):
        return list(RANKING)

    def read_files(self, paths, data):
        how = (data.skip_bad_lines, data.columns, data.encoding)
        return reported(read_ranked_passages(paths, *how))

    def hold_out(self, texts, data, seed):
        numbered = Pairs(texts.sources, range(len(texts)), texts.name)
        train, held_out = hold_out_pairs(numbered, data, seed)
        return texts.select(train.targets), texts.select(held_out.targets, held_out.name)

    def columns_of(self, texts, roles):
        return [list(dict.fromkeys(texts.sources)), list(dict.fromkeys(texts.targets))]

    def head_of(self, texts, task):
        return ()

    def targets(self, texts, task, held_out):
        return np.array(texts.relevances or (), np.float32)

    def on_top_of(self, encoder, head, options, transform=None):
        return super().on_top_of(encoder, (["score"],), options, transform)

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return RankedExamples.from_passages(
            texts,
            tokenizers["text"],
            settings.data.max_source_length or self.most_tokens,
            loss=task.ranking_loss if held_out else _loss(settings, texts),
            size=settings.data.list_size or _SIZE,
            with_start=bool(task) and task.with_start,
            seed=settings.training.seed,
            **self.pair_format(settings, task),
        )

    def fitting_lengths(self, settings, examples):
        longest = int(examples.text.lengths.max()) // examples.size
        room = int(np.ceil(longest * 1.25 / 8)) * 8
        return {"text": settings.data.max_source_length or min(room, self.most_tokens)}

    def task(self, settings, texts, tokenizers, source_task):
        task = super().task(settings, texts, tokenizers, source_task)
        task.read_pairs(True, **self.pair_format(settings, source_task))
        task.ranking_loss = _loss(settings, texts)
        return task

    def check_test(self, settings, texts, task):
        pass  # What is too long is cut.

    def count_cut(self, texts, task):
        return task.count_truncated(_pairs(texts))

    def described(self, texts):
        queries = len(texts.groups)
        if texts.relevances is None:
            return [
                f"   queries: {queries:,}; passages have no relevance: all are relevant, and those "
                "of other queries are not"
            ]
        relevant = sum(relevance > 0 for relevance in texts.relevances)
        return [
            f"   queries: {queries:,} with {len(texts):,} passages, {relevant:,} of them relevant"
        ]

    def remarks(self, task, texts):
        if texts.relevances is None:
            return [
                f"{texts.name}: without relevances, each passage is ranked among {OTHERS} of other "
                "queries"
            ]
        groups = texts.groups.values()
        without = sum(not any(texts.relevances[row] > 0 for row in rows) for rows in groups)
        if not without:
            return []
        return [f"{texts.name}: {without:,} of {len(groups):,} queries have no relevant passage"]

    def read_test(self, paths, data):
        return self.read_files(paths, data)

    def first(self, texts, examples, most):
        queries = list(texts.groups)[:most]
        return texts.select([row for query in queries for row in texts.groups[query]])

    def held_out_inputs(self, task, texts):
        few = self.first(texts, None, _SHOWN).with_others(1)
        return _pairs(few)[:_SHOWN]

    def count(self, texts):
        return len(texts.with_others(OTHERS))

    def answers(self, task, texts, beams=None, progress=None):
        return scores_of(task, texts.with_others(OTHERS), progress)

    def scores(self, texts, answers, metrics):
        return ranking_scores(texts.with_others(OTHERS), answers, metrics)

    def judged(self, texts, answers):
        """Judges queries by the rank of their first relevant passage: the error is 1 - 1 / rank."""
        texts = texts.with_others(OTHERS)
        relevances = np.array(texts.relevances)
        judged = []
        for query, rows in texts.groups.items():
            if relevances[rows].max() <= 0:
                continue
            ranked = ranked_relevances(relevances[rows], answers[rows])
            error = 1 - reciprocal_rank(ranked, len(ranked))
            right, best = (
                texts.targets[rows[int(np.argmax(values[rows]))]]
                for values in (relevances, answers)
            )
            judged.append(Judged(query, right, right if not error else best, error))
        return judged

    def baseline(self, texts, metrics, task=None):
        """Measures one score for all passages, which puts the least relevant ones first."""
        texts = texts.with_others(OTHERS)
        values = ranking_scores(texts, np.zeros(len(texts)), metrics)
        return Baseline("the same score for all", {name: values[name] for name in metrics})

    def charts(self, task, texts, answers):
        return {}


def _loss(settings, texts: RankedPassages) -> str:
    """The loss that is set, or the one that the data are for.

    Lists need queries with a relevant passage and less relevant ones; pairs without relevances get
    passages of other queries.
    """
    if settings.training.ranking_loss is not None or texts.relevances is None:
        return settings.training.ranking_loss or "listwise"
    relevances, groups = np.array(texts.relevances), texts.groups.values()
    mixed = sum(relevances[rows].max() > relevances[rows].min() for rows in groups)
    return "listwise" if 2 * mixed >= len(groups) else "pointwise"


def _pairs(texts: RankedPassages) -> list[str]:
    rows = zip(texts.sources, texts.targets, strict=True)
    return [f"{query}{BETWEEN}{passage}" for query, passage in rows]
