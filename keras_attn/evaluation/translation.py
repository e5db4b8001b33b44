"""BLEU and chrF, as sacrebleu computes them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_attn.evaluation.error_rates import check_items

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF


class TranslationScore(NamedTuple):
    """A corpus score with the settings that make it comparable.

    Examples:
        >>> bleu(["a dog runs fast"], [["a dog runs fast"]]).score
        100.0...
    """

    score: float
    """From 0 to 100, higher is better."""
    signature: str
    """sacrebleu's signature: settings and version."""


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenized: bool = False,
    lowercase: bool = False,
) -> TranslationScore:
    """Returns corpus BLEU.

    Args:
        hypotheses: One translation a segment.
        references: For each segment one or more translations; their number may differ.
        tokenized: Whether the strings are tokens between spaces already, to be compared as they
            are; otherwise sacrebleu's "13a" tokenizer splits them.
        lowercase: Whether case is ignored.

    Raises:
        UserError: No segments, unequal numbers of segments, or a segment without references.

    Reference: Papineni et al. 2002; Post 2018, https://arxiv.org/abs/1804.08771.

    Examples:
        >>> round(bleu(["a dog runs fast"], [["a dog runs"]]).score, 1)
        59.5
    """
    from sacrebleu.metrics import BLEU  # takes a while to import

    metric = BLEU(tokenize="none" if tokenized else "13a", lowercase=lowercase, force=True)
    return _corpus_score(metric, hypotheses, references)


def chrf(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False
) -> TranslationScore:
    """Returns corpus chrF (chrF2: six character orders, recall weighted twice).

    Args:
        hypotheses: One translation a segment.
        references: For each segment one or more translations; their number may differ.
        lowercase: Whether case is ignored.

    Raises:
        UserError: No segments, unequal numbers of segments, or a segment without references.

    Reference: Popović 2015, https://aclanthology.org/W15-3049.

    Examples:
        >>> round(chrf(["a dog"], [["a dog"]]).score, 1)
        100.0
    """
    from sacrebleu.metrics import CHRF

    return _corpus_score(CHRF(lowercase=lowercase), hypotheses, references)


def _corpus_score(
    metric: "BLEU | CHRF", hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> TranslationScore:
    check_items(hypotheses, references)
    # sacrebleu takes a list for each alternative; None where a segment has fewer.
    streams: list[list[Any]] = [
        [row[k] if k < len(row) else None for row in references]
        for k in range(max(len(row) for row in references))
    ]
    score = metric.corpus_score(list(hypotheses), streams).score
    return TranslationScore(score, str(metric.get_signature()))
