"""Tutorials: notebooks have the cells of their scripts, and run from the first to the last."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs/pages/tutorials"
SCRIPTS = sorted(FOLDER.glob("*.py"))
MOST_SECONDS = 300

pytestmark = pytest.mark.tensorflow


def by_name(path):
    return path.stem


def lines(text):
    """Lines of a script without the comment signs that separate cells and hide commands."""
    kept = (line.removeprefix("# ").rstrip("# ") for line in text.splitlines())
    return [line for line in kept if line and not line.startswith("%%")]


def test_there_are_five():
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("script", SCRIPTS, ids=by_name)
def test_the_notebook_has_the_cells_of_the_script(script):
    notebook = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    assert lines(cells) == lines(script.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code), "jupytext --to ipynb --execute"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=by_name)
def test_it_runs(script, tmp_path):
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    client = NotebookClient(
        notebook, timeout=MOST_SECONDS, resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
