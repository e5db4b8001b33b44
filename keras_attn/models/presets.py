"""Named sizes of models, with the paper that they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from keras_attn.recipes import read_recipe, recipe_names, recipe_of
from keras_attn.task_names import current_task_name
from keras_attn.validation import require, require_one_of


@dataclass(frozen=True)
class Preset:
    """A model's sizes.

    Attributes:
        name: Its name.
        family: Name of the model class.
        description: What it is, in one line.
        paper: Where the sizes come from.
        config: Arguments of the model class, without the vocabulary.
        recipes: Name that the recipes of its family have (`keras_attn.recipes`).
        tasks: Tasks that it can be trained for, the first where nothing else is said.

    Examples:
        >>> get_preset("transformer_base").config["hidden_dim"]
        512
    """

    name: str
    family: str
    description: str
    paper: str
    config: Mapping[str, Any]
    recipes: str
    tasks: tuple[str, ...] = ("seq2seq",)

    def recipe(self, task: str | None = None) -> dict[str, Any]:
        """Reads the recipe for a task; that for its first task where there is none."""
        task = current_task_name(task, warns=True)
        task = task if task in self.tasks else self.tasks[0]
        return recipe_of(self.name, self.recipes, task)


_PRESETS: dict[str, Preset] = {}

PRESETS: Mapping[str, Preset] = MappingProxyType(_PRESETS)
"""All presets by name, in the order in which their families registered them."""


def register_presets(
    family: str,
    presets: Mapping[str, Mapping[str, Any]],
    recipes: str,
    tasks: tuple[str, ...] = ("seq2seq",),
) -> None:
    """Adds the presets of a model family.

    Args:
        family: Name of the model class.
        presets: Fields of `Preset` by the preset's name.
        recipes: Name that the recipes of the family have.
        tasks: Tasks that its models can be trained for, the first where nothing else is said.

    Raises:
        UserError: Another family has a preset of the same name.
    """
    for name, numbers in presets.items():
        preset = Preset(name, family, **{"recipes": recipes, "tasks": tasks} | dict(numbers))
        require(
            _PRESETS.setdefault(name, preset) == preset,
            "A preset of this name is registered already.",
            preset=name,
        )


def stack_config(
    num_layers: int, hidden_dim: int, num_heads: int, intermediate_dim: int, **others: Any
) -> dict[str, Any]:
    """Arguments of a Transformer: its sizes in the order of its constructor, and others by name."""
    return {
        "num_layers": num_layers,
        "hidden_dim": hidden_dim,
        "intermediate_dim": intermediate_dim,
        "num_heads": num_heads,
    } | others


def get_preset(name: str, family: str | None = None) -> Preset:
    """Looks a preset up by its name.

    Args:
        name: The name.
        family: Only presets of this model class count, where given.

    Returns:
        The preset.

    Raises:
        UserError: There is none of that name; the message lists those there are.

    Examples:
        >>> get_preset("bert_base").paper
        'Devlin et al., 2019...'
    """
    names = [key for key, preset in PRESETS.items() if family in (None, preset.family)]
    require_one_of("preset", name, names)
    return PRESETS[name]


def find_recipe(name: str) -> dict[str, Any]:
    """Looks a recipe up, as `keras-attn presets --recipe` prints it.

    Args:
        name: `PRESET`, `PRESET.TASK` or the name of a file of `keras_attn.recipes`.

    Returns:
        Sections of a run's settings, the preset's name among them where one is named.

    Raises:
        UserError: There is neither a preset nor a recipe of that name, or the preset is not for the
            task.
    """
    preset, _, task = name.partition(".")
    task = current_task_name(task, warns=True)
    if preset not in PRESETS:
        require_one_of("recipe", name, [*PRESETS, *recipe_names()])
        return read_recipe(name)
    require_one_of("task", task or PRESETS[preset].tasks[0], PRESETS[preset].tasks)
    recipe = PRESETS[preset].recipe(task or None)
    return {"preset": preset, "task": recipe["task"]} | recipe
