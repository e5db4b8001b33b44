"""Snapshot of the public API: names and signatures of the public modules.

After an intended change, rewrite it with `python -m tests.test_api` and describe the change in
CHANGELOG.md.
"""

import difflib
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import pytest

import keras_attn

SNAPSHOT = Path(__file__).with_name("api.txt")
MODULES = [
    "keras_attn",
    *(f"keras_attn.{name}" for name in keras_attn.__all__ if name[0] not in "_" and name != "load"),
    "keras_attn.tuning",
]
# Methods of Keras' own base classes, whose signatures Keras decides.
OF_KERAS = (keras.layers.Layer, keras.Model, keras.metrics.Metric, keras.losses.Loss)

pytestmark = pytest.mark.tensorflow


def public_api() -> list[str]:
    """All public names with their signatures, sorted."""
    return sorted({line for module in MODULES for line in _of_module(module)})


def _of_module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        yield from _described(f"{name}.{public}", getattr(module, public))


def _described(name: str, thing: Any) -> Iterator[str]:
    if inspect.ismodule(thing):
        return
    if not inspect.isclass(thing):
        yield name + (_signature(thing) if callable(thing) else "")
        return
    yield name + _signature(thing)
    for member in dir(thing):
        if not member.startswith("_") and not _is_of_keras(thing, member):
            value = inspect.getattr_static(thing, member)
            value = getattr(value, "__func__", value)
            yield f"{name}.{member}" + (_signature(value) if inspect.isfunction(value) else "")


def _is_of_keras(thing: type, member: str) -> bool:
    """Whether a member comes from outside of this package, or implements a member of Keras."""
    owner = next(one for one in thing.__mro__ if member in vars(one))
    inherited = any(issubclass(thing, base) and hasattr(base, member) for base in OF_KERAS)
    return inherited or not owner.__module__.startswith("keras_attn")


def _signature(thing: Any) -> str:
    """The names, kinds and defaults of arguments; annotations are not part of the snapshot."""
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        return ""  # Python's own, which differs between its versions
    signature = inspect.signature(thing)
    parameters = [
        parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()
    ]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return re.sub(r" at 0x[0-9a-f]+", "", str(plain))


def test_the_public_api_is_that_of_the_snapshot():
    expected = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changes = [
        line
        for line in difflib.unified_diff(expected, public_api(), n=0, lineterm="")
        if line[0] in "+-" and not line.startswith(("+++", "---"))
    ]
    assert not changes, (
        "The public API has changed:\n  " + "\n  ".join(changes) + "\n"
        "If this is intended, run `python -m tests.test_api` and add it to CHANGELOG.md."
    )


def test_changes_are_found(monkeypatch):
    def greedy_search(step, state, *, more=1):
        """Not the real one."""

    monkeypatch.setattr(
        importlib.import_module("keras_attn.generation"), "greedy_search", greedy_search
    )
    line = "keras_attn.generation.greedy_search(step, state, *, more=1)"
    assert line in public_api()
    assert line not in SNAPSHOT.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
    print(f"{SNAPSHOT}: {len(public_api())} names")
