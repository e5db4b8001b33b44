"""Measures tasks and models on examples with known answers."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import Examples, Pairs, ScoredPairs, group_references, plan_epoch
from keras_attn.evaluation import (
    CORRELATIONS,
    LABELS,
    RETRIEVAL,
    TAGGING,
    LabelCounts,
    calibration_error,
    evaluate_texts,
    metric_signatures,
    partner_ranks,
)
from keras_attn.ops.cross_entropy import token_cross_entropy
from keras_attn.tokenizers import split_words
from keras_attn.validation import require_one_of

if TYPE_CHECKING:
    from keras_attn.tasks.embedding import EmbeddingTask
    from keras_attn.tasks.exported.generating import ExportedSeq2Seq
    from keras_attn.tasks.exported.labelling import (
        ExportedClassification,
        ExportedEmbedding,
        ExportedTokenClassification,
    )
    from keras_attn.tasks.labels import BaseClassificationTask
    from keras_attn.tasks.seq2seq import Seq2SeqTask
    from keras_attn.tasks.token_classification import TokenClassificationTask

_MEASURED_TOKENS = 4096


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
    sources, references = group_references(pairs)
    found = task.predict_n_best(sources, 1, beams, progress)
    hypotheses = [best[0].text if best else "" for best in found]
    results: dict[str, float | str] = {"items": len(sources)}
    results |= evaluate_texts(metrics, hypotheses, references)
    signatures = metric_signatures(metrics, references)
    results |= {f"{name}_signature": signature for name, signature in signatures.items()}
    if perplexity:
        results["perplexity"] = task.perplexity(pairs.sources, pairs.targets)
    return results


def measure_labels(
    task: "BaseClassificationTask | ExportedClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Classifies inputs and compares the labels with the correct ones.

    Every row counts, including repeated inputs.

    Args:
        task: A classification task or its export.
        pairs: Inputs and their labels.
        metrics: Names in `keras_attn.evaluation.LABELS`.
        progress: Called with the number of inputs done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of inputs; "calibration_error", see
        `keras_attn.evaluation.calibration_error`; "labels", precision, recall and F1 of each label
        and how many items have it; and "confusion", how often each label was predicted (columns)
        for each correct one (rows), both in the order of "labels".

    Raises:
        UserError: A metric is unknown.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abc"), ["noun", "verb"])
        >>> found = measure_labels(task, Pairs(["cab", "bac"], ["noun", "verb"]), ["accuracy"])
        >>> sorted(found)
        ['accuracy', 'calibration_error', 'confusion', 'items', 'labels']
    """
    for name in metrics:
        require_one_of("metric", name, LABELS)
    found = [best for (best,) in task.predict_n_best(pairs.sources, 1, progress=progress)]
    counts = LabelCounts.of(pairs.targets, [best.text for best in found])
    correct = [best.text == label for best, label in zip(found, pairs.targets, strict=True)]
    probabilities = np.exp([best.log_probability for best in found])
    return {
        "items": len(pairs),
        **{name: LABELS[name](counts) for name in metrics},
        "calibration_error": calibration_error(correct, probabilities),
        "labels": counts.by_label(),
        "confusion": counts.matrix.tolist(),
    }


def measure_vectors(
    task: "EmbeddingTask | ExportedEmbedding",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Measures how well embeddings retrieve the partner of each text, or agree with scores.

    For each distinct source, all distinct targets are ranked by their similarity. A target equal to
    the source is ignored unless it is one of the source's own targets.

    Args:
        task: An embedding task or its export.
        pairs: Pairs of texts that belong together, or pairs with similarity scores.
        metrics: Names in `keras_attn.evaluation.RETRIEVAL` for pairs, in `CORRELATIONS` for pairs
            with scores.
        progress: Called with the number of texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of distinct sources, or of pairs with
        scores.

    Raises:
        UserError: A metric is unknown for such pairs.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
        >>> pairs = Pairs(["a cat sat", "a dog ran"], ["the cat sits", "the dog runs"])
        >>> measure_vectors(task, pairs, ["mrr", "recall_at_1"])
        {'items': 2, 'mrr': ..., 'recall_at_1': ...}
    """
    known = CORRELATIONS if isinstance(pairs, ScoredPairs) else RETRIEVAL
    for name in metrics:
        require_one_of("metric", name, known)
    if isinstance(pairs, ScoredPairs):
        first, second = (task.predict(texts, progress) for texts in (pairs.sources, pairs.targets))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosines = np.sum(first * second, axis=1) / np.maximum(lengths, 1e-12)
        values = {name: CORRELATIONS[name](cosines, pairs.scores) for name in metrics}
        return {"items": len(pairs)} | values
    sources, references = group_references(pairs)
    number = {text: row for row, text in enumerate(dict.fromkeys(pairs.targets))}
    ranks = partner_ranks(
        task.predict(sources, progress),
        task.predict(list(number), progress),
        [[number[text] for text in targets] for targets in references],
        [[number[text]] if text in number else [] for text in sources],
    )
    return {"items": len(sources)} | {name: RETRIEVAL[name](ranks) for name in metrics}


def measure_tags(
    task: "TokenClassificationTask | ExportedTokenClassification",
    pairs: Pairs,
    metrics: Sequence[str],
    progress: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Tags the words of texts and compares the tags with the correct ones.

    Every row counts, including repeated texts.

    Args:
        task: A token classification task or its export.
        pairs: Texts, and the tags of their words.
        metrics: Names in `keras_attn.evaluation.TAGGING`.
        progress: Called with the number of different texts done after each batch.

    Returns:
        Each metric's value by its name; "items", the number of texts.

    Raises:
        UserError: A metric is unknown, or a text does not have as many tags as words.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyzAR")
        >>> model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=2)
        >>> task = TokenClassificationTask(model, tokenizer, ["O", "NAME"])
        >>> pairs = Pairs(["Anna lives in Rome"], ["NAME O O NAME"])
        >>> measure_tags(task, pairs, ["tag_accuracy"])
        {'items': 1, 'tag_accuracy': ...}
    """
    for name in metrics:
        require_one_of("metric", name, TAGGING)
    sources = list(dict.fromkeys(pairs.sources))
    found = task.predict_n_best(sources, 1, progress=progress)
    tags = {text: split_words(best.text) for text, (best,) in zip(sources, found, strict=True)}
    hypotheses = [tags[text] for text in pairs.sources]
    references = list(map(split_words, pairs.targets))
    return {"items": len(pairs)} | {name: TAGGING[name](hypotheses, references) for name in metrics}


def token_scores(model: keras.Model, examples: Examples) -> dict[str, float]:
    """Measures a model on the labels of examples.

    Args:
        model: A model from the inputs of the examples to logits.
        examples: Tokenized examples; label 0 is ignored.

    Returns:
        The "perplexity" of the labels, and the "accuracy" of the most probable ones, in percent.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> model = CausalTransformer(7, num_layers=1, hidden_dim=8, num_heads=2)
        >>> token_scores(model, TextExamples.from_texts(["cab", "abba"], tokenizer))
        {'perplexity': ..., 'accuracy': ...}
    """
    summed = tf.function(
        lambda inputs, labels: tf.stack(token_cross_entropy(labels, model(inputs))),
        input_signature=examples.signature,
        autograph=False,
    )
    sums = np.zeros(4)
    for rows in plan_epoch(examples, max(_MEASURED_TOKENS, int(examples.lengths.max())), seed=None):
        sums += summed(*examples.assemble(rows)).numpy()
    _, nll, tokens, correct = sums.tolist()
    return {
        "perplexity": math.exp(min(nll / max(tokens, 1), 700)),
        "accuracy": 100 * correct / max(tokens, 1),
    }
