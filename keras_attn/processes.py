"""Starts Python so that modules in the current folder are never imported."""

# Only modules that every Python has already loaded may be imported here.
import os
import sys

_SEARCH_PATH = "PYTHONPATH"


def python_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module, to be started with `python_environment()`.

    `-P` removes the current folder, which may contain an unrelated `numpy.py`, from `sys.path`.

    Args:
        module: Name of the module.
        *arguments: Its arguments.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environment(**variables: str) -> dict[str, str]:
    """Returns the environment of this process for a child process that runs Python.

    Entries of `PYTHONPATH` that mean the current folder, such as "" or ".", are removed, because
    Python would import `sitecustomize.py` from there. Other relative entries become absolute.

    Args:
        **variables: Variables with new values.
    """
    environment = os.environ | variables
    entries = environment.pop(_SEARCH_PATH, "").split(os.pathsep)
    kept = [os.path.realpath(entry) for entry in entries if not _is_current_folder(entry)]
    return environment | ({_SEARCH_PATH: os.pathsep.join(kept)} if kept else {})


def forget_current_folder() -> None:
    """Removes the current folder from `sys.path`, where `python -m` and `PYTHONPATH` put it.

    `PYTHONPATH=:` and "." mean the current folder; absolute entries are kept, because they are
    intended. The folder also stays if it contains this package, which then runs from its sources.
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
