"""Recipes: settings of a run by preset and task, as YAML files that users read, copy and edit.

A preset is trained for a task by `PRESET.TASK.yaml`, or by `FAMILY.TASK.yaml` where it has none of
its own. The entry `extends` names recipes whose settings count where a file says nothing else.
`by_amount` holds settings for more or less training data, by conditions such as `rows < 10000`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_attn import documents
from keras_attn.validation import require_one_of

_FOLDER = Path(__file__).parent
# By which tokenizers and mechanisms of attention are chosen.
_CHOICES = ("kind", "name")
# A name alone is a mapping that has nothing else.
_BY_NAME_ALONE = ("attention", "relative_positions")


def recipe_names() -> list[str]:
    """Lists all recipes."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_recipe(name: str) -> dict[str, Any]:
    """Reads a recipe, and those that it extends.

    Args:
        name: Name of its file, without `.yaml`.

    Returns:
        Sections of a run's settings.

    Raises:
        UserError: There is no recipe of that name.
    """
    require_one_of("recipe", name, recipe_names())
    return completed(documents.read_yaml(_FOLDER / f"{name}.yaml"))


def completed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Lays settings over the recipe, or the list of recipes, that their entry `extends` names.

    Their rules `by_amount` stay, except those for kinds of things that the settings replace.
    """
    own = {name: value for name, value in settings.items() if name != "extends"}
    names = settings.get("extends", [])
    below: dict[str, Any] = {}
    for name in [names] if isinstance(names, str) else names:
        below = merged(below, read_recipe(name))
    if "by_amount" in below:
        below["by_amount"] = _without_set(below["by_amount"], _only_choices(own))
    return merged(below, own)


def recipe_of(preset: str, family: str, task: str) -> dict[str, Any]:
    """Reads the recipe by which a preset is trained for a task.

    Args:
        preset: Name of the preset, or "fine_tuning" for weights that are trained already.
        family: Name that the recipes of its family have.
        task: Name of the task.

    Returns:
        Sections of a run's settings, "task" among them; nothing else where there is no recipe.
    """
    names = recipe_names()
    found = [name for name in (f"{preset}.{task}", f"{family}.{task}") if name in names]
    return (read_recipe(found[0]) if found else {}) | {"task": task}


def merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Lays one nested dict over another.

    Where the upper one names another kind of a thing, such as of a tokenizer, what the lower one
    sets of the thing belonged to its kind, and is left out.
    """
    result = dict(lower)
    for name, value in upper.items():
        below = result.get(name)
        if name in _BY_NAME_ALONE and isinstance(below, str) and isinstance(value, Mapping):
            below = {"name": below}
        if name in _BY_NAME_ALONE and isinstance(value, str) and isinstance(below, Mapping):
            value = {"name": value}
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            another = any(
                key in value and key in below and value[key] != below[key] for key in _CHOICES
            )
            value = dict(value) if another else merged(below, value)
        result[name] = value
    return result


def layered(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Lays nested dicts over each other.

    A rule of `by_amount` gives way to what later layers set, and all rules to an empty `by_amount`.
    """
    result: dict[str, Any] = {"by_amount": {}}
    for layer in layers:
        replaced = layer.get("by_amount") == {}
        rules = {} if replaced else _without_set(result["by_amount"], layer)
        result = merged(result | {"by_amount": rules}, layer)
    return result


def _without_set(rules: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """The rules without what a layer of settings sets."""
    left = {condition: _left(settings, layer) for condition, settings in rules.items()}
    return {condition: settings for condition, settings in left.items() if settings}


def _only_choices(layer: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a nested dict that chooses between kinds of things."""
    parts = {
        name: _only_choices(value) if isinstance(value, Mapping) else value
        for name, value in layer.items()
        if isinstance(value, Mapping) or name in _CHOICES
    }
    return {name: value for name, value in parts.items() if value != {}}


def _left(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a nested dict that another one leaves as it is."""
    left = {}
    for name, value in lower.items():
        above = upper.get(name)
        if isinstance(value, Mapping) and isinstance(above, Mapping):
            value = {} if any(choice in above for choice in _CHOICES) else _left(value, above)
        elif name in upper:
            continue
        if value != {}:
            left[name] = value
    return left
