"""Operations of tasks that are implemented in folders above this one.

`training`, `convert` and `export` use tasks, so tasks cannot import them. Each registers what it
does of what `Task` declares; this is the only place that imports them by name.
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
    """Registers a function as what tasks do by a name.

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
    """Calls what is registered by a name, after importing where that is done."""
    if name not in _OPERATIONS:
        importlib.import_module(_HOMES[name])
    return _OPERATIONS[name](*arguments, **options)
