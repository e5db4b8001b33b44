"""Search spaces: settings by their place in run.yaml, and the values that each may have."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from keras_attn.recipes import merged
from keras_attn.validation import UserError, require, require_one_of

_DIGITS = 12  # significant digits of a number
_RANGE = ("min", "max", "step", "log")
# Sections of run.yaml whose settings may be varied.
_SECTIONS = ("model", "attention", "training", "tokenizers", "decoding")


@dataclass(frozen=True)
class Choice:
    """One of several values of a setting.

    Attributes:
        values: Numbers, texts or booleans, all of one kind.
    """

    values: tuple[Any, ...]

    def draw(self, name: str, hyperparameters: Any) -> dict[str, Any]:
        """Requests a value from KerasTuner; returns settings by their place."""
        return {name: self.plain(hyperparameters.Choice(name, list(self.values)))}

    def plain(self, drawn: Any) -> Any:
        """A value from KerasTuner, as the user would write it."""
        # KerasTuner uses integers for true and false.
        return self.values[self.values.index(drawn)]


@dataclass(frozen=True)
class Range:
    """A number in a range; an integer if both ends are integers.

    Attributes:
        min: Least value.
        max: Greatest value, included.
        step: Distance of neighboring values (with `log`, their ratio); any value if missing.
        log: Whether values are drawn evenly on a logarithmic scale.
    """

    min: float
    max: float
    step: float | None = None
    log: bool = False

    def draw(self, name: str, hyperparameters: Any) -> dict[str, Any]:
        """Requests a value from KerasTuner; returns settings by their place."""
        declare = hyperparameters.Int if self._whole else hyperparameters.Float
        step = self.step or (1 if self._whole and not self.log else None)
        sampling = "log" if self.log else "linear"
        return {name: self.plain(declare(name, self.min, self.max, step=step, sampling=sampling))}

    def plain(self, drawn: Any) -> Any:
        """A value from KerasTuner, as the user would write it."""
        # A sum of steps may not be the nearest floating-point number to the intended value.
        return int(drawn) if self._whole else float(f"{drawn:.{_DIGITS}g}")

    @property
    def _whole(self) -> bool:
        return all(isinstance(end, int) for end in (self.min, self.max))


@dataclass(frozen=True)
class Options:
    """One of several named groups of settings.

    Attributes:
        groups: For each name of a group, its settings by their place.
    """

    groups: Mapping[str, Mapping[str, Any]]

    def draw(self, name: str, hyperparameters: Any) -> dict[str, Any]:
        """Requests a value from KerasTuner; returns settings by their place."""
        return dict(self.groups[hyperparameters.Choice(name, list(self.groups))])

    def plain(self, drawn: Any) -> Any:
        """A value from KerasTuner, as the user would write it."""
        return drawn


class SearchSpace:
    """The settings that a search varies.

    Args:
        entries: By the place of a setting, such as `"training.learning_rate"`: a list of values,
            `{"min": …, "max": …, "step": …, "log": …}`, or one value for all trials. By any other
            name: `{"NAME": {"model.rotary_positions": True}, …}`, groups of settings, one of
            which is chosen.

    Raises:
        UserError: An entry is invalid, or its section cannot be varied.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)
        self._fixed: dict[str, Any] = {}
        self._dimensions: dict[str, Any] = {}
        for name, value in self._entries.items():
            dimension = _dimension(name, value)
            if dimension is None:
                self._fixed[name] = value
            else:
                self._dimensions[name] = dimension

    @property
    def names(self) -> list[str]:
        """The dimensions of the space."""
        return list(self._dimensions)

    def restricted(self, entries: Mapping[str, Any]) -> "SearchSpace":
        """Returns the space with some entries replaced or added."""
        return SearchSpace(self._entries | dict(entries))

    def places(self) -> set[str]:
        """All settings that the space sets."""
        groups = [each.groups for each in self._dimensions.values() if isinstance(each, Options)]
        inside = {place for group in groups for places in group.values() for place in places}
        named = {name for name in self._entries if "." in name}
        return named | inside

    def without(self, given: Collection[str]) -> "SearchSpace":
        """Returns the space without settings that already have a value.

        Args:
            given: Names of settings. A setting of a group removes the whole group.
        """
        kept = {
            name: entry
            for name, entry in self._entries.items()
            if not SearchSpace({name: entry}).places() & set(given)
        }
        return SearchSpace(kept)

    def draw(self, hyperparameters: Any) -> dict[str, Any]:
        """Requests the values of a trial from KerasTuner.

        Args:
            hyperparameters: A `keras_tuner.HyperParameters`.

        Returns:
            Nested settings, as in run.yaml.
        """
        places = dict(self._fixed)
        for name, dimension in self._dimensions.items():
            places |= dimension.draw(name, hyperparameters)
        settings: dict[str, Any] = {}
        for place, value in places.items():
            for part in reversed(place.split(".")):
                value = {part: value}
            settings = merged(settings, value)
        return settings

    def plain(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The varied values of a trial from KerasTuner's values, as the user would write them."""
        return {name: self._dimensions[name].plain(values[name]) for name in self.names}

    def to_dict(self) -> dict[str, Any]:
        """The entries of this space."""
        return dict(self._entries)


def _dimension(name: str, value: Any) -> Choice | Range | Options | None:
    """The dimension of an entry; None if it is a single value."""
    if isinstance(value, list):
        _require_place(name)
        kinds = {type(one) for one in value}
        require(
            len(value) > 0 and len(kinds) == 1 and kinds <= {int, float, str, bool},
            f"The values of `{name}` must be of one kind: numbers, texts or booleans.",
            **{name: value},
        )
        return Choice(tuple(value))
    if isinstance(value, Mapping) and {"min", "max"} <= set(value):
        _require_place(name)
        return _range(name, value)
    if isinstance(value, Mapping):
        for group, places in value.items():
            require(
                isinstance(places, Mapping),
                f"`{name}` must be a range with min and max, or groups of settings.",
                **{group: places},
            )
            for place in places:
                _require_place(place)
        require(len(value) > 0, f"`{name}` must have at least one group.", **{name: value})
        return Options(dict(value))
    _require_place(name)
    return None


def _range(name: str, value: Mapping[str, Any]) -> Range:
    for word in value:
        require_one_of(f"{name}: range", word, _RANGE)
    numbers = {word: _number(name, value[word]) for word in ("min", "max", "step") if word in value}
    result = Range(**numbers, log=value.get("log", False))
    require(
        result.min < result.max and (result.min > 0 or not result.log),
        f"`{name}` needs min below max, and above 0 if `log` is true.",
        **dict(value),
    )
    return result


def _number(name: str, value: Any) -> float:
    # YAML reads 1e-3 as a text.
    try:
        return float(value) if isinstance(value, str) else value + 0
    except (TypeError, ValueError):
        raise UserError(f"The ends of `{name}` must be numbers. Received: {value!r}.") from None


def _require_place(place: str) -> None:
    section, _, name = place.partition(".")
    require_one_of("section", section, _SECTIONS)
    require(bool(name), "The name of a varied setting must be SECTION.NAME.", name=place)
