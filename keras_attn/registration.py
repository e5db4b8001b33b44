"""Registers all serializable classes with Keras, as soon as Keras is imported."""

import importlib
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_HOLDERS = (
    "layers",
    "models",
    "training.loop.losses",
    "training.loop.schedules",
)
_PACKAGE = __name__.partition(".")[0]


def register_with_keras() -> None:
    """Registers the classes, or waits until Keras is imported."""
    if "keras" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _WhenKerasIsImported())


def _register() -> None:
    for name in _HOLDERS:
        importlib.import_module(f"{_PACKAGE}.{name}")


class _WhenKerasIsImported:
    """An import hook that finds no modules, but notices imports of Keras and of this package.

    Keras may be imported by a module of this package, which is then incomplete while other modules
    may need it. So registration waits for the outermost module of this package.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0  # modules of ours

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "keras" and not name.startswith(f"{_PACKAGE}."):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Watched(spec.loader, self)
        return spec

    def run(self, loader: Any, module: ModuleType) -> None:
        """Runs a module, then registers if Keras is imported and no own module is incomplete."""
        own = module.__name__ != "keras"
        self._count(own)
        try:
            loader.exec_module(module)
        finally:
            under_way = self._count(-own)
        # Keras is imported now if it has just run, or a module of this package that imports it.
        if not under_way and (not own or "keras" in sys.modules):
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _register()

    def _count(self, change: int) -> int:
        with self._lock:
            self._under_way += change
            return self._under_way


class _Watched:
    """A loader that wraps another one, and notifies the watcher when the module has run."""

    def __init__(self, loader: Any, watcher: _WhenKerasIsImported) -> None:
        self._loader = loader
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # From now on the module has its original loader.
        module.__spec__.loader = module.__loader__ = self._loader
        self._watcher.run(self._loader, module)
