"""Starts Python such that no file of the current folder is ever imported."""

# Nothing but what every Python has loaded already may be imported here.
import os
import sys

_SEARCH_PATH = "PYTHONPATH"


def python_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module, to be started with `python_environment()`.

    `-P` keeps the current folder, which may hold a `numpy.py` of somebody else, off `sys.path`.

    Args:
        module: The module's name.
        *arguments: What it is given.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(**variables: str) -> dict[str, str]:
    """Returns the environment of this process for another one that runs Python.

    Entries of `PYTHONPATH` that stand for the current folder, such as "" or ".", are left out, for
    Python would import `sitecustomize.py` from there; other relative ones become absolute.

    Args:
        **variables: Variables that are to have other values.
    """
    environment = os.environ | variables
    entries = environment.pop(_SEARCH_PATH, "").split(os.pathsep)
    kept = [os.path.realpath(entry) for entry in entries if not _is_current_folder(entry)]
    return environment | ({_SEARCH_PATH: os.pathsep.join(kept)} if kept else {})


def forget_current_folder() -> None:
    """Takes the current folder off `sys.path`, where `python -m` and `PYTHONPATH` put it.

    `PYTHONPATH=:` or an entry "." stands for it; an absolute entry is kept, as it was named on
    purpose. It stays where it holds this package, which is then run from its sources.
    """
    sources = os.path.realpath(__file__.rsplit(os.sep, 2)[0])
    here = os.path.realpath(os.curdir)
    if here == sources:
        return
    if os.path.realpath(sys.path[0]) == here and not sys.flags.safe_path:
        del sys.path[0]
    named = os.environ.get(_SEARCH_PATH)
    entries = named.split(os.pathsep) if named else []
    on_purpose = any(
        entry.startswith(os.sep) and os.path.realpath(entry) == here for entry in entries
    )
    if any(map(_is_current_folder, entries)) and not on_purpose:
        sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != here]


def _is_current_folder(entry: str) -> bool:
    relative = not entry.startswith(os.sep)
    return relative and os.path.realpath(entry) == os.path.realpath(os.curdir)
