"""Named sizes of models, with the paper that they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from keras_attn.validation import require, require_one_of


@dataclass(frozen=True)
class Preset:
    """A model's sizes, and the recipe by which it is trained.

    Attributes:
        family: Name of the model class.
        description: What it is, in one line.
        paper: Where the sizes come from.
        config: Arguments of the model class, without the vocabulary.
        recipe: Sections of a run's settings ("task", "training", "model", "tokenizers",
            "decoding", "metrics") in which it differs from the defaults.
        other_recipes: Recipes for other tasks that it can be trained for, by the task.
    """

    family: str
    description: str
    paper: str
    config: Mapping[str, Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)
    other_recipes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """The kind of task that it is trained for where nothing else is said."""
        return self.recipe.get("task", "seq2seq")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The kinds of tasks that it can be trained for."""
        return (self.task, *self.other_recipes)

    def recipe_for(self, task: str | None) -> Mapping[str, Any]:
        """The recipe for a kind of task; its own one for `None`, and where there is no other."""
        return self.other_recipes.get(task, self.recipe)


_PRESETS: dict[str, Preset] = {}

PRESETS: Mapping[str, Preset] = MappingProxyType(_PRESETS)
"""All presets by name, in the order in which their families registered them."""


def register_presets(family: str, presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds the presets of a model family.

    Args:
        family: Name of the model class.
        presets: Fields of `Preset` by the preset's name.

    Raises:
        UserError: Another family has a preset of the same name.
    """
    for name, numbers in presets.items():
        preset = Preset(family, **numbers)
        require(
            _PRESETS.setdefault(name, preset) == preset,
            "A preset of this name is registered already.",
            preset=name,
        )


def get_preset(name: str, family: str | None = None) -> Preset:
    """Looks a preset up by its name.

    Args:
        name: The name.
        family: Only presets of this model class count, where given.

    Returns:
        The preset.

    Raises:
        UserError: There is none of that name; the message lists those there are.
    """
    names = [key for key, preset in PRESETS.items() if family in (None, preset.family)]
    require_one_of("preset", name, names)
    return PRESETS[name]
