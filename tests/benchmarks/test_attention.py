import json
import subprocess
import sys

import pytest

from keras_attn.benchmarks.attention import run

pytestmark = pytest.mark.tensorflow


def test_every_figure_comes_from_its_own_process():
    figures = list(run([67], heads=2, key_dim=3, repeats=1))
    assert [figure["implementation"] for figure in figures] == ["dense", "chunked"]
    for figure in figures:
        assert figure["length"] == 67
        assert 0 < figure["seconds"] < 60
        assert figure["peak_bytes"] >= 0
        assert json.loads(json.dumps(figure)) == figure


def test_dense_is_not_tried_where_it_cannot_fit():
    (figure,) = run([2_000_000], implementations=["dense"])
    assert figure["error"].startswith("needs about 640000 GB")


def test_a_failing_process_is_told():
    (figure,) = run([5], heads=0, implementations=["chunked"])
    assert "exit status 1" in figure["error"]


def test_command_prints_json_lines():
    command = [sys.executable, "-m", "keras_attn.benchmarks.attention"]
    options = ["--lengths", "2000000", "--implementations", "dense"]
    done = subprocess.run(command + options, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["length"] == 2_000_000
