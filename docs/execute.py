"""Executes tutorials, and writes them as notebooks with what came out.

`python docs/execute.py [NAME …]`, such as `tuning`; all of them without a name. Tutorials write and
download files in a temporary folder.
"""

import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "pages" / "tutorials"
MOST_SECONDS = 600


def execute(script: Path) -> None:
    """Writes the notebook of a script beside it."""
    notebook = jupytext.read(script)
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=MOST_SECONDS, resources={"metadata": {"path": folder}}
        )
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
    target = script.with_suffix(".ipynb")
    unfinished = target.with_suffix(".unfinished")
    nbformat.write(notebook, unfinished)
    unfinished.replace(target)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem in sys.argv[1:] or not sys.argv[1:]:
            start = time.monotonic()
            execute(path)
            print(f"{path.stem}: {time.monotonic() - start:.0f} s", flush=True)
