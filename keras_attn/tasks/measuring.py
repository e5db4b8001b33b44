"""Measures a task on pairs of texts."""

from collections.abc import Callable, Sequence

from keras_attn.data import Pairs, group_references
from keras_attn.evaluation import evaluate_texts, metric_signatures
from keras_attn.tasks.exported import ExportedSeq2Seq
from keras_attn.tasks.seq2seq import Seq2SeqTask


def measure(
    task: Seq2SeqTask | ExportedSeq2Seq,
    pairs: Pairs,
    metrics: Sequence[str],
    beams: int | None = None,
    perplexity: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, float | str]:
    """Decodes the sources and compares the texts with the references.

    Rows with an equal source count as one item with alternative references.

    Args:
        task: What predicts.
        pairs: Sources and references.
        metrics: Names of text metrics (see `keras_attn.evaluation.metric_names`).
        beams: Width of the beam search; the task's own by default.
        perplexity: Whether to add the perplexity of all targets.
        progress: Called with the number of sources done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of different sources; and for BLEU
        and chrF sacrebleu's signature, as "bleu_signature".
    """
    sources, references = group_references(pairs)
    found = task.predict_n_best(sources, 1, beams, progress)
    hypotheses = [best[0].text if best else "" for best in found]
    results = {"items": len(sources)} | evaluate_texts(metrics, hypotheses, references)
    signatures = metric_signatures(metrics, references)
    results |= {f"{name}_signature": signature for name, signature in signatures.items()}
    if perplexity:
        results["perplexity"] = task.perplexity(pairs.sources, pairs.targets)
    return results
