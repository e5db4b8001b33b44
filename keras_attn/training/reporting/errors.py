"""The errors of a trained task on held-out texts, which the report of its run shows."""

import csv
import dataclasses
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_attn.evaluation.labels import calibration_bins, calibration_error
from keras_attn.files import write_text

ERRORS_FILE = "errors.json"
_MOST_SHOWN = 12
_MOST_LABELS = 40


class Judged(NamedTuple):
    """A prediction beside what is correct.

    Attributes:
        source: The input, as it is printed.
        reference: The correct answers, separated by " / ".
        prediction: The answer of the task.
        error: How wrong it is; 0 for a correct answer.
    """

    source: str
    reference: str
    prediction: str
    error: float


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The metrics of a baseline that needs no model.

    Attributes:
        answer: The answer, as the end of a sentence about it.
        metrics: Its metrics on the held-out texts.
    """

    answer: str
    metrics: Mapping[str, float]


def write_errors(
    run: Path,
    texts: str,
    judged: Sequence[Judged],
    baseline: Baseline,
    charts: Mapping[str, Any],
) -> None:
    """Writes errors.json into the folder of a run.

    Args:
        run: The folder.
        texts: What the held-out texts are called.
        judged: Predictions for some of them.
        baseline: A baseline that needs no model.
        charts: What the report draws of the answers, see `TaskRun.charts`.
    """
    worst = _wrong(judged)
    content: dict[str, Any] = {
        "texts": texts,
        "items": len(judged),
        "wrong": len(worst),
        "baseline": dataclasses.asdict(baseline),
        "worst": worst[:_MOST_SHOWN],
        **charts,
    }
    write_text(run / ERRORS_FILE, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def write_wrong(path: str | Path, judged: Sequence[Judged]) -> None:
    """Writes all wrong answers to a CSV file, the worst first.

    Args:
        path: The file.
        judged: Predictions.
    """
    file = io.StringIO(newline="")
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(("error", "input", "correct", "predicted"))
    for one in _wrong(judged):
        rows.writerow((f"{one.error:.4f}", one.source, one.reference, one.prediction))
    write_text(path, file.getvalue())


def _wrong(judged: Sequence[Judged]) -> list[Judged]:
    return sorted((one for one in judged if one.error), key=lambda one: -one.error)


def confusion(answered: Sequence[tuple[str, str]], labels: Sequence[str]) -> dict[str, Any]:
    """Counts which labels are confused.

    Args:
        answered: Each correct label with the one that was predicted.
        labels: The labels that the task answers with.

    Returns:
        "confused", the pairs of labels that are confused most; "counts", how often each of "labels"
        (rows) was answered by each (columns): of all labels, or of those that are confused most.
    """
    counts = Counter(answered)
    confused = sorted((-count, pair) for pair, count in counts.items() if pair[0] != pair[1])
    if len(labels) > _MOST_LABELS:
        errors: Counter[str] = Counter()
        for count, pair in confused:
            errors.update(dict.fromkeys(pair, -count))
        chosen = {label for label, _ in errors.most_common(_MOST_LABELS)}
        labels = [label for label in labels if label in chosen]
    return {
        "confused": [[*pair, -count] for count, pair in confused[:_MOST_SHOWN]],
        "labels": list(labels),
        "counts": [[counts.get((row, name), 0) for name in labels] for row in labels],
    }


def calibration(correct: Sequence[bool], probabilities: np.ndarray) -> dict[str, Any]:
    """The error of calibration of answers, and how often they are correct by their probability."""
    return {
        "calibration_error": calibration_error(correct, probabilities),
        "calibration": calibration_bins(correct, probabilities),
    }
