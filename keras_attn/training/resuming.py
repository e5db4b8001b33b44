"""Settings that may change when a run is resumed; all others stay as they were."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_attn.training.run_settings import RUN_FILE
from keras_attn.training.settings import TrainingSettings
from keras_attn.validation import UserError

_FIXED = (
    "batch_tokens",
    "ema_decay",
    "freeze",
    "jit",
    "metric",
    "metric_goal",
    "optimizer",
    "seed",
)
MAY_CHANGE = frozenset(
    # Files may have moved; the checksum shows whether they have other training texts.
    [f"data.{name}" for name in ("train", "valid", "test")]
    + [f"training.{f.name}" for f in dataclasses.fields(TrainingSettings) if f.name not in _FIXED]
)
_AUTOMATIC = (None, "auto")


def flat(sections: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by names such as `training.seed`."""
    found = {}
    for name, value in sections.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def without_automatic(layer: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Leaves out the settings of a layer that are automatic, since the run has chosen them.

    Args:
        layer: Nested settings.
        prefix: Names of the sections that they are in.

    Returns:
        Nested settings.
    """
    kept = {}
    for name, value in layer.items():
        place = f"{prefix}{name}"
        if isinstance(value, Mapping):
            kept[name] = without_automatic(value, f"{place}.")
        elif value not in _AUTOMATIC or place in MAY_CHANGE:
            kept[name] = value
    return kept


def check_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises if a run would be resumed with other settings than it can have.

    Args:
        before: The run's settings, nested.
        now: Those that it would be resumed with.

    Raises:
        UserError: Names the settings, with their old and new values.
    """
    before, now = flat(before), flat(now)
    changed = [
        f"{name}={now.get(name)!r}, which is {before.get(name)!r} in {RUN_FILE}"
        for name in sorted({*before, *now} - MAY_CHANGE)
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise UserError(
            "A run that is resumed keeps these settings; start a new run to change them. "
            f"Received: {', '.join(changed)}."
        )
