"""Tutorials run from their first cell to their last."""

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
