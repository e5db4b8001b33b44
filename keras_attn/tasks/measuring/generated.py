"""Measures generated texts by their references."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from keras_attn.data import Pairs, group_references
from keras_attn.evaluation import evaluate_texts, metric_signatures
from keras_attn.tasks.measuring.answers import Answers, best_answers

if TYPE_CHECKING:
    from keras_attn.tasks.exported.generating import ExportedSeq2Seq
    from keras_attn.tasks.seq2seq import Seq2SeqTask


def measure(
    task: "Seq2SeqTask | ExportedSeq2Seq",
    pairs: Pairs,
    metrics: Sequence[str],
    beams: int | None = None,
    perplexity: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, float | str]:
    """Generates a text for each source and compares it with the references.

    Rows with an equal source count as one item with alternative references.

    Args:
        task: A task or its export.
        pairs: Sources and references.
        metrics: Names of text metrics (see `keras_attn.evaluation.metric_names`).
        beams: Width of the beam search; the task's own by default.
        perplexity: Whether to add the perplexity of all targets.
        progress: Called with the number of sources done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of distinct sources; and for BLEU
        and chrF sacrebleu's signature, as "bleu_signature".

    Examples:
        >>> task = Task.load("saved_models/g2p_en")
        >>> pairs = Pairs(["read", "read", "dog"], ["R EH D", "R IY D", "D AO G"])
        >>> measure(task, pairs, ["per", "wer"])
        {'items': 2, 'per': 0.0, 'wer': 0.0}
    """
    results = text_scores(pairs, best_answers(task, pairs.sources, beams, progress), metrics)
    if perplexity:
        results["perplexity"] = task.perplexity(pairs.sources, pairs.targets)
    return results


def text_scores(pairs: Pairs, answers: Answers, metrics: Sequence[str]) -> dict[str, float | str]:
    """Compares generated texts with the references; see `measure`."""
    sources, references = group_references(pairs)
    hypotheses = [answers[source].text for source in sources]
    results: dict[str, float | str] = {"items": len(sources)}
    results |= evaluate_texts(metrics, hypotheses, references)
    signatures = metric_signatures(metrics, references)
    return results | {f"{name}_signature": signature for name, signature in signatures.items()}
