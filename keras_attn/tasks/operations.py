"""Operations of tasks that are implemented in higher-level folders.

`training`, `convert` and `export` import `tasks`, so `tasks` cannot import them. Each registers its
implementations of methods that `Task` declares; only this module imports them by name.
"""

import importlib
from collections.abc import Callable
from typing import Any

_HOMES = {
    "from_preset": "keras_attn.training.fitting",
    "fit": "keras_attn.training.fitting",
    "evaluate": "keras_attn.training.fitting",
    "from_huggingface": "keras_attn.convert.huggingface",
    "export": "keras_attn.export.saved_model",
}
_OPERATIONS: dict[str, Callable] = {}


def operation(name: str) -> Callable[[Callable], Callable]:
    """Registers a function as the implementation of a task's method.

    Args:
        name: One of "from_preset", "fit", "evaluate", "from_huggingface" and "export".

    Returns:
        A decorator that returns the function as it is.
    """

    def register(function: Callable) -> Callable:
        _OPERATIONS[name] = function
        return function

    return register


def perform(name: str, *arguments: Any, **options: Any) -> Any:
    """Calls the implementation registered for a method, importing its module first."""
    if name not in _OPERATIONS:
        importlib.import_module(_HOMES[name])
    return _OPERATIONS[name](*arguments, **options)
