"""Lengths of data in tokens, and the number of examples that a run would drop or cut."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from keras_attn.data.overview import lengths_summary
from keras_attn.data.series.reading import described, missing_values
from keras_attn.recipes import merged
from keras_attn.tasks import Task, task_folder
from keras_attn.training.by_amount import follow_amount
from keras_attn.training.resolving import resolved
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.task_runs import TASK_RUNS
from keras_attn.training.task_runs.base import with_lengths
from keras_attn.training.task_runs.forecast import context_of, horizon_of, read_part
from keras_attn.validation import UserError

_NO_LIMIT = 1 << 30


def series_report(
    paths: list[str], reading: Mapping[str, Any], *layers: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """Describes series as a run would read them.

    Args:
        paths: Files.
        reading: The settings `columns` and `encoding`.
        *layers: Nested settings with a section `data`.

    Returns:
        Lines, and the same as plain values.

    Raises:
        UserError: The series cannot be read, or a setting is invalid.
    """
    given = functools.reduce(merged, layers, {}).get("data", {})
    data = DataSettings(paths, skip_bad_lines=True, **{**reading, **given})
    part = read_part(paths, data)
    horizon, context = horizon_of(data, part), context_of(data, part)
    lines = [
        *described(part.table),
        f"    season: {part.season}, horizon {horizon}, context {context}",
    ]
    if part.table.skipped:
        lines.append("    `train` stops at malformed rows; --skip-bad-lines leaves them out")
    lengths = part.table.ends()
    found = {
        "series": len(lengths),
        "steps": {"shortest": int(lengths.min()), "longest": int(lengths.max())},
        "step": part.table.axis.described(),
        "malformed": part.table.skipped,
        "missing": missing_values(part.table),
        "season": part.season,
        "horizon": horizon,
        "context": context,
    }
    return lines, found


def tokens_report(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Tokenizes training data as a run would.

    Args:
        settings: Nested settings of a run, with a preset or `init`.

    Returns:
        For each side the lengths in tokens and the most that the run would read; how many examples
        it would leave out or truncate.

    Raises:
        UserError: A setting or the data are invalid.
    """
    complete = resolved(settings)
    run = TASK_RUNS[complete.task]
    run.check(complete)
    texts = run.read_texts(complete.data, complete.training.seed, whole=True)["train"]
    complete, _ = follow_amount(complete, run, texts)
    if complete.init:
        task = Task.load(task_folder(complete.init))
        tokenizers, lengths = task.tokenizers, run.lengths_of(task)
        complete = with_lengths(complete, run.lengths, lengths)
    else:
        tokenizers = run.train_tokenizers(complete, texts)
    no_limits = dict.fromkeys(run.lengths.values(), _NO_LIMIT)
    whole_texts = complete.replace(data=dataclasses.replace(complete.data, **no_limits))
    whole = run.examples(whole_texts, texts, tokenizers, None)
    found: dict[str, Any] = {
        "tokens": {side: lengths_summary(lengths) for side, lengths in whole.text_lengths.items()},
        "vocabulary": {role: one.vocabulary_size for role, one in tokenizers.items()},
        "doubts": run.doubts(texts, tokenizers),
    }
    try:
        examples = run.examples(complete, texts, tokenizers, None)
    except UserError as error:
        return found | {"error": str(error)}
    return found | {
        "limits": run.fitting_lengths(complete, examples),
        "without_tokens": examples.dropped_empty,
        "left_out": examples.dropped_long,
        "truncated": examples.truncated,
    }
