"""Registry of evaluation metrics."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from keras_attn.evaluation.error_rates import phoneme_error_rate, word_error_rate
from keras_attn.evaluation.summarization import ROUGE_TYPES, rouge
from keras_attn.evaluation.translation import TranslationScore, bleu, chrf
from keras_attn.validation import require, require_one_of

TextFunction = Callable[[Sequence[str], Sequence[Sequence[str]]], float]


@dataclass(frozen=True)
class Metric:
    """A metric that compares texts, from 0 to 100 (error rates can exceed 100).

    Attributes:
        name: The name that users specify.
        function: Computes the number from hypotheses and the references of each.
        higher_is_better: Whether a larger number is a better one.

    Examples:
        >>> get_metric("per").higher_is_better
        False
    """

    name: str
    function: TextFunction
    higher_is_better: bool

    @property
    def direction(self) -> str:
        """Returns "max" if higher is better, otherwise "min"."""
        return "max" if self.higher_is_better else "min"

    def is_better(self, new: float, old: float | None) -> bool:
        """Returns whether `new` is better than `old`; None is no value yet, NaN is never better."""
        if old is None or old != old:
            return new == new
        return new > old if self.higher_is_better else new < old


_TRANSLATION: dict[str, Callable[..., TranslationScore]] = {
    "bleu": bleu,
    "bleu_tokenized": functools.partial(bleu, tokenized=True),
    "chrf": chrf,
}

_METRICS = {
    metric.name: metric
    for metric in (
        Metric("wer", word_error_rate, higher_is_better=False),
        Metric("per", phoneme_error_rate, higher_is_better=False),
        Metric("exact_match", lambda *texts: 100.0 - word_error_rate(*texts), True),
        *(
            Metric(name, lambda *texts, score=score: score(*texts).score, True)
            for name, score in _TRANSLATION.items()
        ),
        *(Metric(kind, functools.partial(rouge, rouge_type=kind), True) for kind in ROUGE_TYPES),
    )
}


def metric_names() -> list[str]:
    """Returns the names of all metrics.

    Examples:
        >>> "bleu" in metric_names()
        True
    """
    return list(_METRICS)


def get_metric(name: str) -> Metric:
    """Returns the metric of that name.

    Raises:
        UserError: There is none.

    Examples:
        >>> get_metric("wer").function(["K AE T"], [["K AA T"]])
        100.0
    """
    require_one_of("metric", name, _METRICS)
    return _METRICS[name]


def evaluate_texts(
    names: Iterable[str], hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Computes several metrics over the same texts.

    Args:
        names: Names of metrics: "wer", "per", "exact_match", "bleu", "bleu_tokenized", "chrf",
            "rouge1", "rouge2", "rougeL", "rougeLsum".
        hypotheses: One string an item.
        references: For each item, one or more strings that are right.

    Returns:
        A percentage or score for each name, in the order of `names`.

    Raises:
        UserError: An unknown name, no items, unequal numbers of items, an item without references,
            or the package of a metric is missing.

    Examples:
        >>> evaluate_texts(["per", "wer"], ["K AE T", "D AO G"], [["K AE T"], ["D AA G"]])
        {'per': 16.66..., 'wer': 50.0}
    """
    require(not isinstance(names, str), "`names` must be a list of names.", names=names)
    metrics = [get_metric(name) for name in names]
    return {metric.name: metric.function(hypotheses, references) for metric in metrics}


def metric_signatures(names: Iterable[str], references: Sequence[Sequence[str]]) -> dict[str, str]:
    """Returns sacrebleu's signatures of those metrics that have one.

    A signature holds the settings, sacrebleu's version and the number of references: scores with
    equal signatures can be compared.

    Args:
        names: Names of metrics.
        references: For each item, one or more strings that are right.

    Returns:
        A signature by name, for BLEU and chrF.

    Raises:
        UserError: No items, or an item without references.

    Examples:
        >>> metric_signatures(["wer"], [["K AE T"]])
        {}
    """
    # Signatures depend only on the numbers of references: one item of each number is enough.
    rows = list({len(row): row for row in references}.values())
    hypotheses = [row[0] for row in rows if row]
    return {
        name: _TRANSLATION[name](hypotheses, rows).signature
        for name in names
        if name in _TRANSLATION
    }
