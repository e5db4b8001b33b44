"""Settings of runs that only some tasks have."""

from typing import Any, NamedTuple

from keras_attn.training.run_settings import SERIES_SETTINGS, RunSettings
from keras_attn.validation import require


class _OfSome(NamedTuple):
    """A setting, and which attribute of a `TaskRun` is true where it has a meaning.

    Attributes:
        section: Section of the settings.
        name: Name in the section.
        attribute: The attribute.
        lacking: What other tasks lack besides the setting, or "".
        default: The value that all tasks have.
    """

    section: str
    name: str
    attribute: str
    lacking: str = ""
    default: Any = None


_SETTINGS = (
    _OfSome("training", "class_weights", "has_labels", "labels"),
    _OfSome("training", "thresholds", "choose_thresholds"),
    _OfSome("training", "ranking_loss", "ranks"),
    _OfSome("data", "list_size", "ranks", "lists"),
    _OfSome("data", "label_separator", "has_several"),
    _OfSome("data", "untagged", "has_tags", "tags"),
    *(
        _OfSome("data", name, "of_series", "series", default)
        for name, default in SERIES_SETTINGS.items()
    ),
)


def check_settings_of_some(run: Any, settings: RunSettings) -> None:
    """Raises for settings without a meaning for a task.

    Args:
        run: The `TaskRun`.
        settings: The settings.

    Raises:
        UserError: Such a setting is set.
    """
    for one in _SETTINGS:
        value = getattr(getattr(settings, one.section), one.name)
        lacking = f"no {one.lacking}, and " if one.lacking else ""
        require(
            bool(getattr(run, one.attribute, False)) or value == one.default,
            f"The task {run.name!r} has {lacking}no `{one.section}.{one.name}`.",
            **{one.name: value},
        )
    require(
        run.generates or not settings.decoding,
        f"The task {run.name!r} has no `decoding`.",
        decoding=settings.decoding,
    )
    require(
        run.takes_metrics or not settings.metrics,
        f"The task {run.name!r} is measured by its perplexity, without `metrics`.",
        metrics=settings.metrics,
    )
