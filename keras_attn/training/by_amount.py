"""Settings that follow from the amount of training data, by the rules of a recipe."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_attn.training.run_settings import RunSettings, flat
from keras_attn.training.task_runs import TaskRun
from keras_attn.validation import UserError

_CONDITION = re.compile(r"(rows|words) (<|>=) (\d+)")
_COUNTED = 100_000  # texts whose words are counted


def with_each_rule(settings: RunSettings) -> Iterator[RunSettings]:
    """Applies one rule after the other to settings, so that each can be checked.

    Raises:
        UserError: A condition cannot be read, or a setting is unknown or impossible.
    """
    for condition, layer in settings.by_amount.items():
        _limit(condition)
        yield _overlaid(settings, layer)


def follow_amount(
    settings: RunSettings, run: TaskRun, texts: Any
) -> tuple[RunSettings, dict[str, dict[str, Any]]]:
    """Applies the rules whose conditions the training data meet.

    Of several that set the same thing the one with the lowest upper limit counts, without any the
    one with the highest lower limit.

    Args:
        settings: Settings with rules; those that users set are not among them.
        run: What depends on the task.
        texts: The training texts.

    Returns:
        Settings without rules, and what was applied: settings by condition.
    """
    amounts = {"rows": len(texts)}
    if any(condition.startswith("words") for condition in settings.by_amount):
        amounts["words"] = sum(map(_count_words, run.columns_of(texts, run.roles)))
    rules = [(*_limit(condition), condition) for condition in settings.by_amount]
    layers, settings = settings.by_amount, settings.replace(by_amount={})
    applied: dict[str, dict[str, Any]] = {}
    for is_upper, limit, unit, condition in sorted(rules, key=_priority):
        if (amounts[unit] < limit) == is_upper:
            layer = layers[condition]
            settings = _overlaid(settings, layer)
            applied = {one: _without(names, layer) for one, names in applied.items()}
            applied[condition] = flat(layer)
    return settings, {condition: names for condition, names in applied.items() if names}


def _without(names: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name not in flat(layer)}


def _priority(rule: tuple[bool, int, str, str]) -> tuple[bool, int]:
    is_upper, limit, *_ = rule
    return is_upper, -limit if is_upper else limit


def _limit(condition: str) -> tuple[bool, int, str]:
    """Whether a condition has an upper limit, the limit and its unit."""
    found = _CONDITION.fullmatch(str(condition))
    if not found:
        raise UserError(
            "A rule of `by_amount` must have a condition such as 'rows < 10000' or "
            f"'words >= 1000000'. Received: {condition!r}."
        )
    return found[2] == "<", int(found[3]), found[1]


def _overlaid(settings: RunSettings, layer: Mapping[str, Any]) -> RunSettings:
    return RunSettings.resolve(settings.replace(by_amount={}).to_dict(), layer)


def _count_words(texts: Sequence[str]) -> int:
    """Counts words between spaces; of many texts by a sample at equal distances."""
    step = max(len(texts) // _COUNTED, 1)
    sample = texts[::step]
    return sum(len(text.split()) for text in sample) * len(texts) // max(len(sample), 1)
