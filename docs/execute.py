"""Executes tutorials, and writes them as notebooks with what came out.

`python docs/execute.py [NAME …]`, such as `tuning`; all of them without a name. Tutorials write and
download files in a temporary folder.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "pages" / "tutorials"
MOST_SECONDS = 600
_COLOR = r"(\x1b\[\d*m|\s)*"
_LOG = re.compile(
    rf"{_COLOR}(WARNING: All log messages before absl|[IWE]0000 00:00:|WARNING: Loc|$)"
)


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
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_without_logs, cell.outputs) if output]
    target = script.with_suffix(".ipynb")
    unfinished = target.with_suffix(".unfinished")
    nbformat.write(notebook, unfinished)
    unfinished.replace(target)


def _without_logs(output):
    """An output without what TensorFlow's C++ code and pip log; None if nothing is left."""
    if output.output_type != "stream":
        return output
    lines = output.text.splitlines(keepends=True)
    output.text = "".join(line for line in lines if not _LOG.match(line))
    return output if output.text.strip() else None


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.py")):
        if path.stem in sys.argv[1:] or not sys.argv[1:]:
            start = time.monotonic()
            execute(path)
            print(f"{path.stem}: {time.monotonic() - start:.0f} s", flush=True)
