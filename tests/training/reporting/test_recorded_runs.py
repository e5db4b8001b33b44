"""The recorded runs whose results the benchmarks and the cards state are runs of the presets."""

from pathlib import Path

import pytest
import yaml

from keras_attn.models.presets import get_preset

PROJECT = Path(__file__).parents[3]
RUNS = sorted(
    [*PROJECT.glob("docs/pages/reference/runs/*.yaml"), *PROJECT.glob("saved_models/*/run.yaml")]
)
# What a run has in place of its recipe, as its card says.
INSTEAD = {"saved_models/g2p_en_stress/run.yaml": {"epochs": 20}}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_is_the_recipe_of_its_preset(path):
    run = yaml.safe_load(path.read_text(encoding="utf-8"))
    preset = get_preset(run["preset"])
    recipe = preset.recipe()
    assert preset.config | run["model"] == preset.config
    recipe["training"] |= INSTEAD.get(str(path.relative_to(PROJECT)), {})
    for part in ("training", "decoding", "tokenizers"):
        assert run[part] | recipe[part] == run[part]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_names_files_and_no_folders(path):
    data = yaml.safe_load(path.read_text(encoding="utf-8"))["data"]
    files = [name for part in ("train", "valid", "test") for name in data[part] or []]
    assert files
    assert all(Path(name).name == name for name in files)
