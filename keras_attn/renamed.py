"""Support for the names of the previous version, which work for one more version."""

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_Class = TypeVar("_Class")


def renamed(old: str, new: str) -> str:
    """Returns the sentence that a user of an old name reads."""
    return f"{old} is now {new}; the old name will be removed in the next version."


def warn_of_old_name(notice: str) -> None:
    """Issues a `DeprecationWarning` at the first caller outside of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("keras_attn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(notice, DeprecationWarning, stacklevel=level + 1)


def renamed_keys(
    values: Mapping[str, Any], names: Mapping[str, str], owner: str | None = None
) -> dict[str, Any]:
    """Returns values under their new names.

    Args:
        values: Values by name; if an old and the new name are given, the new one counts.
        names: New names by the old ones.
        owner: Prefix of the names in a `DeprecationWarning`, such as "training."; `None` for files
            of the previous version, which load without a warning.
    """
    found = {}
    for name, value in values.items():
        new = names.get(name, name)
        if name != new and owner is not None:
            notice = renamed(f"`{owner}{name}`", f"`{owner}{new}`")
            warn_of_old_name(notice)
        if name == new or new not in values:
            found[new] = value
    return found


def renamed_arguments(**names: str) -> Callable[[Callable], Callable]:
    """Makes a decorator for a function that accepts old names of its keyword arguments.

    Args:
        **names: New names by the old ones; using an old one issues a `DeprecationWarning`.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def renaming(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **renamed_keys(kwargs, names, owner=""))

        return renaming

    return decorate


def renamed_fields(**names: str) -> Callable[[type[_Class]], type[_Class]]:
    """Makes a decorator for a dataclass whose fields can be given and read by old names.

    Args:
        **names: New names by the old ones; using an old one issues a `DeprecationWarning`.
    """

    def decorate(cls: type[_Class]) -> type[_Class]:
        cls.__init__ = renamed_arguments(**names)(cls.__init__)
        for old, new in names.items():
            setattr(cls, old, old_attribute(old, new))
        return cls

    return decorate


def old_attribute(old: str, new: str) -> property:
    """Makes an attribute that reads another one and issues a `DeprecationWarning`."""

    def read(owner: Any) -> Any:
        warn_of_old_name(renamed(f"`{old}`", f"`{new}`"))
        return getattr(owner, new)

    return property(read, doc=f"Old name of `{new}`.")


def old_names(module: str, names: Mapping[str, str], namespace: Mapping[str, Any]) -> Callable:
    """Makes a module's `__getattr__`, which returns the object that an old name refers to.

    Args:
        module: Name of the module.
        names: New names by the old ones.
        namespace: The module's `globals()`.

    Returns:
        A function from an old name to the object; it issues a `DeprecationWarning`.
    """

    def getattr_of_module(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        notice = renamed(f"{module}.{name}", f"{module}.{names[name]}")
        warn_of_old_name(notice)
        return namespace[names[name]]

    return getattr_of_module


def load_old_names(names: Mapping[str, type]) -> None:
    """Lets Keras load files in which classes have the names of the previous version.

    A class of the old name is made for each, because Keras finds weights by the names of classes.

    Args:
        names: The classes by their old names.
    """
    import keras

    for name, new in names.items():
        old = type(name, (new,), {"__module__": new.__module__, "__doc__": new.__doc__})
        keras.saving.register_keras_serializable(package="keras_attn", name=name)(old)
