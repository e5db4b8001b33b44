"""Tutorials run from their first cell to their last."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs/pages/tutorials"
SCRIPTS = sorted(FOLDER.glob("*.py"))
MOST_SECONDS = 300

pytestmark = pytest.mark.tensorflow


def test_there_are_five():
    assert len(SCRIPTS) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_runs(script, tmp_path):
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    client = NotebookClient(
        notebook, timeout=MOST_SECONDS, resources={"metadata": {"path": tmp_path}}
    )
    client.execute()


def cells_of(script):
    """Kind and text of each cell of a script, as notebooks have them."""
    for part in script.read_text().split("# %%")[1:]:
        head, _, text = part.partition("\n")
        lines = text.strip("\n").split("\n")
        if "[markdown]" in head:
            yield "markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
        else:
            code = [line.removeprefix("# ") if line.startswith("# !") else line for line in lines]
            yield "code", "\n".join(code)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_its_notebook_has_its_cells(script):
    cells = json.loads(script.with_suffix(".ipynb").read_text())["cells"]
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    assert found == list(cells_of(script))
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert outputs
    assert all(output["output_type"] != "error" for output in outputs)
