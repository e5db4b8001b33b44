"""Constructors whose arguments are documented once and make up the configuration."""

import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import keras

from keras_attn.layers.activations import serialize_activation
from keras_attn.layers.layer_configs import serialize_layer, templates_described
from keras_attn.validation import require

_OF_KERAS = ("name", "dtype", "trainable")
_MADE_BY_LAYERS = ("_initializer", "_regularizer", "_constraint")
_SECTIONS = r"(Args|Call arguments|Returns|Raises|References?|Examples?):\n"


class Configured:
    """Keeps what the constructor of a layer or a model was given, as its configuration.

    The constructor names its arguments. `**kwargs` means the fields of the dataclass `sizes`, the
    arguments of the parent's constructor, and those of Keras' own base class. Signature and
    docstring list all of them, and where an argument of the call is not documented, the parent's
    text is taken.

    A subclass names this class before that of Keras.
    """

    sizes: ClassVar[type | None] = None
    """Dataclass whose fields the constructor takes besides its own arguments."""

    fixed_arguments: ClassVar[tuple[str, ...]] = ()
    """Arguments of the parent's constructor that this one does not take."""

    arguments: ClassVar[tuple[str, ...]] = ()
    """Names of the arguments in the configuration."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        init = vars(cls).get("__init__")
        if init is None and "**kwargs" in (cls.__doc__ or ""):
            cls.__doc__ = _completed_docstring(cls, inspect.signature(cls.__init__))
        if init is None or not _is_plain(init):
            return
        signature = _completed_signature(cls, init)
        cls.__init__ = _keeping_arguments(init, signature)
        cls.__doc__ = _completed_docstring(cls, signature)
        if "get_config" not in vars(cls):  # which would describe the arguments itself
            cls.arguments = _names(signature)

    def _keep(self, given: dict[str, Any]) -> None:
        # Not a dict, in which Keras would take layers for parts of the object.
        self._given = types.SimpleNamespace(**given)

    def given_config(self) -> dict[str, Any]:
        """Describes what the constructor was given, but for Keras' own arguments."""
        return {name: _described(value) for name, value in vars(self._given).items()}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        own = {
            name: _made(value, custom_objects)
            for name, value in config.items()
            if name not in _OF_KERAS and not cls._makes(name, value)
        }
        with templates_described():
            return cls(**config | own)

    @classmethod
    def _makes(cls, name: str, value: Any) -> bool:
        """Whether the constructor makes what a configuration describes."""
        return False


class ConfiguredLayer(Configured):
    """A layer whose configuration holds the arguments of its constructor.

    They are read from the attributes of the same name, with or without an underscore before it. A
    class that writes a `get_config` adds its own arguments to that of its parent.
    """

    def _keep(self, given):
        pass  # The attributes have it.

    def get_config(self):
        config = super().get_config()
        for name in self.fixed_arguments:
            config.pop(name, None)
        return config | {name: self._argument(name) for name in self.arguments}

    def _argument(self, name: str) -> Any:
        attribute = name if hasattr(self, name) else f"_{name}"
        require(
            hasattr(self, attribute),
            f"{type(self).__name__} must keep its argument as an attribute or have a `get_config`.",
            argument=name,
        )
        value = getattr(self, attribute)
        if name.endswith(_MADE_BY_LAYERS):
            return keras.saving.serialize_keras_object(value)
        return value if isinstance(value, tuple) else _described(value)

    @classmethod
    def _makes(cls, name, value):
        # Keras' initializers, in the order that random numbers depend on.
        is_of_keras = isinstance(value, dict) and (value.get("module") or "").startswith("keras.")
        return is_of_keras and name.endswith(_MADE_BY_LAYERS)


def split_options(kind: type, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Takes the fields of a dataclass out of keyword arguments.

    Args:
        kind: The dataclass.
        options: Keyword arguments.

    Returns:
        The dataclass's object, and the other arguments.
    """
    names = {field.name for field in dataclasses.fields(kind)}
    own = {name: value for name, value in options.items() if name in names}
    return kind(**own), {name: value for name, value in options.items() if name not in names}


def _is_plain(init: Callable) -> bool:
    kinds = {parameter.kind for parameter in inspect.signature(init).parameters.values()}
    return not kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}


def _keeping_arguments(init: Callable, signature: inspect.Signature) -> Callable:
    """A constructor of that signature, which keeps its arguments if it is that of the class."""

    @functools.wraps(init)
    def keeping(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind_partial(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}{_by_place(signature)}") from None
        further = bound.arguments.pop("kwargs", {})
        init(**bound.arguments, **further)
        bound.apply_defaults()
        # A subclass may give some of its parent's arguments itself.
        names = [name for name in _names(signature) if name in bound.arguments]
        self._keep({name: bound.arguments[name] for name in names})

    keeping.__signature__ = signature
    return keeping


def _by_place(signature: inspect.Signature) -> str:
    """Names the arguments that can be given by their places."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [name for name, one in signature.parameters.items() if one.kind in kinds][1:]
    return f" (without a name: {', '.join(names)})"


def _names(signature: inspect.Signature) -> tuple[str, ...]:
    return tuple(
        name
        for name, parameter in list(signature.parameters.items())[1:]
        if parameter.kind is not parameter.VAR_KEYWORD and name not in _OF_KERAS
    )


def _parent(cls: type) -> type | None:
    """The class whose constructor the class's own one calls, where it is one of these."""
    parent = next(one for one in cls.__mro__[1:] if "__init__" in vars(one))
    return parent if issubclass(parent, Configured) else None


def _completed_signature(cls: type, init: Callable) -> inspect.Signature:
    """The signature with all arguments that `**kwargs` means."""
    signature = inspect.signature(init)
    own = list(signature.parameters.values())
    if all(one.kind is not one.VAR_KEYWORD for one in own):
        return signature
    further = [] if cls.sizes is None else _fields(cls.sizes)
    if parent := _parent(cls):
        further += map(_after_others, inspect.signature(parent.__init__).parameters.values())
    else:
        further.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    named = {*signature.parameters, *cls.fixed_arguments} - {"kwargs"}
    further = {one.name: one for one in reversed(further) if one.name not in named}
    first = [one for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    last = [one for one in own if one.kind is one.KEYWORD_ONLY]
    parameters = [*first, *reversed(further.values()), *last]
    # Keras' own arguments are the last, by their place too where all others are.
    kind = inspect.Parameter.KEYWORD_ONLY if last else inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [one.replace(kind=kind) if one.name in _OF_KERAS else one for one in parameters]
    order = sorted(parameters, key=lambda one: (one.kind, one.name in _OF_KERAS))
    return signature.replace(parameters=order)


def _fields(sizes: type) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if field.name in getattr(sizes, "positional", ())
            else inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=field.type,
        )
        for field in dataclasses.fields(sizes)
    ]


def _after_others(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parent's argument, which may follow arguments with defaults."""
    if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        return parameter.replace(kind=parameter.KEYWORD_ONLY)
    return parameter


def _completed_docstring(cls: type, signature: inspect.Signature) -> str | None:
    """The docstring with the arguments that `**kwargs` means, and those of the call."""
    documentation = cls.__doc__
    if documentation is None or not re.search(r"^ +\*\*\w+:", documentation, re.MULTILINE):
        return documentation
    above = _sections(next(one for one in cls.__mro__[1:] if issubclass(one, Configured)).__doc__)
    sections = _sections(documentation)
    texts = documented_fields(cls.sizes) | _entries(above, "Args") | _entries(sections, "Args")
    texts["kwargs"] = "    **kwargs: Arguments of `keras.layers.Layer`."
    sections["Args"] = _joined(texts, list(signature.parameters)[1:])
    call = _entries(above, "Call arguments") | _entries(sections, "Call arguments")
    if call:
        sections["Call arguments"] = _joined(call, inspect.signature(cls.call).parameters)
        sections.setdefault("Returns", above.get("Returns", ""))
    order = ("", "Args", "Call arguments", "Returns")
    ordered = {name: sections.pop(name) for name in order if sections.get(name)} | sections
    parts = [f"{name}:\n{body}" if name else body for name, body in ordered.items()]
    return "\n\n".join(parts) + "\n"


def _sections(documentation: str | None) -> dict[str, str]:
    """A docstring's text by heading, that before the first one under the empty name."""
    first, *others = re.split(rf"(?m)^{_SECTIONS}", inspect.cleandoc(documentation or ""))
    return {"": first.rstrip()} | {
        name: body.rstrip() for name, body in zip(others[::2], others[1::2], strict=True)
    }


def _entries(sections: dict[str, str], name: str) -> dict[str, str]:
    """A section's text by argument; several may have one text."""
    found = {}
    for entry in re.split(r"\n(?=    [\w*])", sections.get(name, "")):
        for argument in entry.partition(":")[0].split(","):
            found[argument.strip()] = entry
    return {argument: entry for argument, entry in found.items() if argument.isidentifier()}


def _joined(texts: dict[str, str], names: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(texts[name] for name in names if name in texts))


def documented_fields(sizes: type | None) -> dict[str, str]:
    """The entries of the fields in the docstrings of a dataclass and its parents, by name."""
    found = {}
    for kind in reversed(sizes.__mro__ if sizes else ()):
        documented = inspect.cleandoc(kind.__doc__ or "")
        section = documented.partition("Attributes:\n")[2].partition("\n\n")[0]
        found |= _entries({"Attributes": section}, "Attributes")
    return found


def _described(value: Any) -> Any:
    if isinstance(value, keras.layers.Layer):
        return serialize_layer(value)
    if isinstance(value, keras.initializers.Initializer | keras.regularizers.Regularizer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    return serialize_activation(value) if callable(value) else value


def _made(value: Any, custom_objects: dict | None) -> Any:
    if isinstance(value, dict) and "class_name" in value:
        return keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
    return [_made(part, custom_objects) for part in value] if isinstance(value, list) else value
