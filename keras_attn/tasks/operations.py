"""Operations of tasks that are implemented in higher-level folders.

`training`, `convert` and `export` import `tasks`, so `tasks` cannot import them. Only this module
imports them, by name.
"""

import importlib
from typing import Any

from keras_attn.tasks.graphs import require_tensorflow

_FUNCTIONS = {
    "from_preset": ("keras_attn.training.fitting", "from_preset"),
    "fit": ("keras_attn.training.fitting", "fit"),
    "evaluate": ("keras_attn.training.fitting", "evaluate"),
    "from_huggingface": ("keras_attn.convert.huggingface", "from_huggingface"),
    "save_huggingface": ("keras_attn.convert.saved_huggingface", "save_huggingface"),
    "export": ("keras_attn.export.saved_model", "export_saved_model"),
}
_COMPUTING = ("fit", "evaluate", "export")


def perform(method: str, *arguments: Any, **options: Any) -> Any:
    """Calls the function that implements a method of `Task`, importing its module first."""
    if method in _COMPUTING:
        require_tensorflow()
    module, name = _FUNCTIONS[method]
    return getattr(importlib.import_module(module), name)(*arguments, **options)
