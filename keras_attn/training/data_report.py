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
from keras_attn.training.run_settings import DataSettings, RunSettings
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
    resolved = RunSettings.resolve(settings)
    run = TASK_RUNS[resolved.task]
    run.check(resolved)
    texts = run.read_texts(resolved.data, resolved.training.seed, whole=True)["train"]
    resolved, _ = follow_amount(resolved, run, texts)
    if resolved.init:
        task = Task.load(task_folder(resolved.init))
        tokenizers, lengths = task.tokenizers, run.lengths_of(task)
        resolved = with_lengths(resolved, run.lengths, lengths)
    else:
        tokenizers = run.train_tokenizers(resolved, texts)
    no_limits = dict.fromkeys(run.lengths.values(), _NO_LIMIT)
    whole_texts = resolved.replace(data=dataclasses.replace(resolved.data, **no_limits))
    whole = run.examples(whole_texts, texts, tokenizers, None)
    found: dict[str, Any] = {
        "tokens": {side: lengths_summary(rows.lengths) for side, rows in whole.sides.items()},
        "vocabulary": {role: one.vocabulary_size for role, one in tokenizers.items()},
    }
    try:
        examples = run.examples(resolved, texts, tokenizers, None)
    except UserError as error:
        return found | {"error": str(error)}
    return found | {
        "limits": run.fitting_lengths(resolved, examples),
        "without_tokens": examples.dropped_empty,
        "left_out": examples.dropped_long,
        "truncated": examples.truncated,
    }
