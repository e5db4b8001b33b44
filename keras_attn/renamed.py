"""Names of the version before, which keep working for one version."""

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def with_new_names(
    values: Mapping[str, Any], names: Mapping[str, str], owner: str, warns: bool = True
) -> dict[str, Any]:
    """Gives values that have names of the version before their new names.

    Args:
        values: Values by name; where a value has both names, the new name counts.
        names: New names by the old ones.
        owner: Name of what has the values, for the warning.
        warns: Whether to warn with a `DeprecationWarning`.

    Returns:
        The values, in their order.
    """
    found = {}
    for name, value in values.items():
        if name not in names:
            found[name] = value
            continue
        if warns:
            warnings.warn(
                f"`{owner}{name}` is now `{owner}{names[name]}`; the old name will be removed in "
                "the next version.",
                DeprecationWarning,
                stacklevel=3,
            )
        if names[name] not in values:
            found[names[name]] = value
    return found


def takes_old_names(names: Mapping[str, str]) -> Callable[[Callable], Callable]:
    """Makes a decorator of functions whose arguments have new names.

    Args:
        names: New names by the old ones.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def renamed(*arguments: Any, **options: Any) -> Any:
            return function(*arguments, **with_new_names(options, names, ""))

        return renamed

    return decorate


def old_names(module: str, names: Mapping[str, str], namespace: Mapping[str, Any]) -> Callable:
    """Makes a module's `__getattr__`, which finds what has another name now.

    Args:
        module: Name of the module.
        names: New names by the old ones.
        namespace: The module's `globals()`.

    Returns:
        A function from an old name to what it stands for; it warns with a `DeprecationWarning`.
    """

    def getattr_of_module(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is now {module}.{names[name]}; the old name will be removed in the "
            "next version.",
            DeprecationWarning,
            stacklevel=2,
        )
        return namespace[names[name]]

    return getattr_of_module


def load_old_names(names: Mapping[str, type]) -> None:
    """Lets Keras load files in which classes have the names of the version before.

    Args:
        names: The classes by their old names.
    """
    import keras

    for name, new in names.items():
        keras.saving.get_custom_objects()[f"keras_attn>{name}"] = new
