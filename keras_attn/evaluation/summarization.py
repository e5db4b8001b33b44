"""ROUGE, as rouge-score computes it."""

import functools
from collections.abc import Sequence
from types import ModuleType

from keras_attn.evaluation.error_rates import check_items
from keras_attn.validation import UserError, require_one_of

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def rouge(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], rouge_type: str = "rougeL"
) -> float:
    """Returns the mean F1 of ROUGE in percent, computed on stems (Porter's algorithm).

    Of several references the one with the highest F1 counts. rouge-score only supports words of
    ASCII letters and digits: texts in other scripts have a ROUGE of 0.

    Args:
        hypotheses: One summary an item.
        references: For each item one or more summaries.
        rouge_type: "rouge1" or "rouge2" for common words or pairs of words, "rougeL" for the
            longest common subsequence of words, "rougeLsum" for those of summaries with a sentence
            in each line.

    Raises:
        UserError: No items, unequal numbers of items, an item without references, there is no such
            type, or the package rouge-score is missing.

    Reference: Lin 2004, https://aclanthology.org/W04-1013.

    Examples:
        >>> round(rouge(["the cat sat"], [["the cat ran"]]), 1)
        66.7
    """
    require_one_of("rouge_type", rouge_type, ROUGE_TYPES)
    check_items(hypotheses, references)
    scorer = _library().RougeScorer([rouge_type], use_stemmer=True)
    scores = [
        scorer.score_multi(alternatives, hypothesis)[rouge_type].fmeasure
        for hypothesis, alternatives in zip(hypotheses, references, strict=True)
    ]
    return 100.0 * sum(scores) / len(scores)


@functools.cache
def _library() -> ModuleType:
    try:
        from rouge_score import rouge_scorer  # takes a while to import
    except ImportError as error:
        raise UserError("ROUGE needs rouge-score: pip install 'keras_attn[rouge]'.") from error
    return rouge_scorer
