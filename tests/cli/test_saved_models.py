"""The models that are shipped: small, as their cards say, and what the commands take."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow
FOLDER = Path(__file__).parents[2] / "saved_models"
MODELS = sorted(path for path in FOLDER.iterdir() if path.is_dir())
MEGABYTE = 1e6


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_has_all_parts_and_is_listed(model):
    assert {"README.md", "run.yaml", "1"} <= {path.name for path in model.iterdir()}
    assert f"]({model.name}/README.md)" in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert size(model) < 15 * MEGABYTE
    assert (model / "1" / "saved_model.pb").stat().st_size < 2.5 * MEGABYTE


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_the_task_in_the_export_answers_alike(model):
    from keras_attn.tasks import Task, open_task

    words = ["transformer", "attention", "serendipity"]
    assert Task.load(model).predict(words) == open_task(model).predict(words)


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_card_shows_what_predict_prints(model, keras_attn):
    card = (model / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n\$ keras-attn predict (\S+) (.+)\n((?:.+\n)+)```", card)
    status, output, error = keras_attn("predict", model, *shown[2].split())
    assert (status, output) == (0, shown[3]), error


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
@pytest.mark.slow
def test_is_verified(model, keras_attn):
    keras_attn.output("verify", model)
