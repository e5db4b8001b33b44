"""The steps of CONTRIBUTING.md, followed with made-up examples in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PAGE = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Files of a section that no test reads, and those that a command writes.
NOT_TESTED = {
    "CHANGELOG.md",
    "docs/mkdocs.yml",
    "docs/pages/guides/hugging_face.md",
    "docs/pages/guides/layers.md",
    "docs/pages/guides/python.md",
    "tests/api.txt",
}

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

MECHANISM = {
    "keras_attn/layers/attention/distance_attention.py": '''
"""Attention by distance."""

import keras
from keras import ops

from keras_attn.layers.attention.single_head_base import BaseSingleHeadAttention
from keras_attn.ops.scores import dot_scores
from keras_attn.validation import require


@keras.saving.register_keras_serializable(package="keras_attn")
class DistanceAttention(BaseSingleHeadAttention):
    """Averages values by the distance of query and key: softmax(-|q - k|² s / (2 width²)).

    Args:
        width: Distance at which a key counts less, above 0.
        **kwargs: Further arguments of `BaseSingleHeadAttention`.
    """

    def __init__(self, width: float = 1.0, **kwargs):
        super().__init__(**kwargs)
        require(width > 0, "`width` must be above 0.", width=width)
        self.width = width

    def _build_comparison(self, query_dim, key_dim):
        require(
            query_dim == key_dim,
            "Distances need a query and a key of the same size.",
            query_features=query_dim,
            key_features=key_dim,
        )
        self.sharpness = self.add_weight(name="sharpness", shape=(), initializer="ones")
        return key_dim

    def _scores(self, query, key):
        # |q|² is the same for all keys, so the softmax does not depend on it.
        dots = dot_scores(query, key)
        norms = ops.sum(ops.square(ops.cast(key, dots.dtype)), axis=-1)
        scale = ops.cast(self.sharpness, dots.dtype) / self.width**2
        return (dots - ops.expand_dims(norms, 1) / 2.0) * scale
''',
    "keras_attn/layers/__init__.py": """
from keras_attn.layers.attention.distance_attention import DistanceAttention

__all__ += ["DistanceAttention"]
""",
    "keras_attn/layers/attention/registry.py": """
from keras_attn.layers.attention.distance_attention import DistanceAttention

ATTENTION["distance"] = (DistanceAttention, {})
""",
    "keras_attn/cli/train.py": """
__doc__ = __doc__.replace("additive or luong", "additive, distance or luong")
""",
    "keras_attn/benchmarks/mechanisms.py": """
MECHANISMS["distance"] = Measured(
    _layer("DistanceAttention"), _projected(0, _products), lambda n: n * n
)
""",
    "tests/layers/cases.py": """
CASES.append(
    LayerCase(
        layers.DistanceAttention,
        {"width": 2.0, "dropout": 0.2, "seed": 7},
        {"query": X, "value": X, "attention_mask": mask(3, 2, 5, 5)},
        options={"return_attention_scores": True},
        outputs=((2, 5, 7), (2, 5, 5)),
        trainable=1,
        non_trainable=1,
    )
)
""",
    "tests/layers/mechanisms.py": """
MECHANISMS["distance"] = Mechanism(partial(layers.DistanceAttention, 2.0))
""",
    "tests/layers/sizes_of_one.py": """
GROUPS["scores"]["DistanceAttention"] = (layers.DistanceAttention, self_attention)
""",
    "tests/layers/attention/test_distance_attention.py": '''
"""Attention by distance, compared with NumPy."""

import numpy as np
import pytest

from keras_attn.layers import DistanceAttention
from keras_attn.validation import UserError
from tests.harness import numbers


def test_it_is_the_softmax_of_distances():
    query, value = numbers(1, 2, 5, 7), numbers(2, 2, 11, 7)
    distances = np.square(query[:, :, None] - value[:, None]).sum(-1)
    weights = np.exp(-distances / (2 * 3.0**2))
    expected = weights / weights.sum(-1, keepdims=True) @ value
    np.testing.assert_allclose(DistanceAttention(3.0)(query, value), expected, atol=1e-5)


def test_a_width_of_zero_is_refused():
    with pytest.raises(UserError, match="`width` must be above 0. Received: width=0"):
        DistanceAttention(0)
''',
    "docs/pages/explanation/attention/distance.md": """
# Distances: `DistanceAttention`

softmax(-|q - k|² / 2)

```python
import numpy as np
from keras_attn.layers import DistanceAttention

x = np.random.default_rng(0).normal(size=(2, 5, 7))
assert DistanceAttention()(x, x).shape == (2, 5, 7)
```
""",
}

FAMILY = {
    "keras_attn/models/echo/echo.py": '''
"""Echo."""

import keras

from keras_attn.models.transformer import CausalTransformer


@keras.saving.register_keras_serializable(package="keras_attn")
class Echo(CausalTransformer):
    """A language model like `CausalTransformer`, with sizes of its own."""
''',
    "keras_attn/models/echo/presets.py": '''
"""Sizes of Echo."""

ECHO_PRESETS = {
    "echo_tiny": {
        "description": "small language model",
        "paper": "made up",
        "config": {"num_layers": 2, "hidden_dim": 64, "num_heads": 2, "intermediate_dim": 128},
    }
}
''',
    "keras_attn/models/echo/__init__.py": '''
"""Echo."""

from keras_attn.models.echo.echo import Echo
from keras_attn.models.echo.presets import ECHO_PRESETS
from keras_attn.models.presets import register_presets

__all__ = ["Echo"]

register_presets("Echo", ECHO_PRESETS, "echo", tasks=("causal_lm",))
''',
    "keras_attn/models/__init__.py": """
from keras_attn.models.echo import Echo

__all__ += ["Echo"]
""",
    "keras_attn/recipes/echo.causal_lm.yaml": """
extends: language_model
tokenizers:
  text:
    kind: characters
""",
    "keras_attn/tuning/spaces.py": """
SPACES["Echo"] = SPACES["CausalTransformer"]
""",
    "setup.cfg": ("    bert | compressive |", "    bert | compressive | echo |"),
    "tests/models/every_family.py": """
EVERY["Echo"] = (lambda: models.Echo(11, **SIZES), TOKENS)
""",
    "tests/export/test_matrix.py": """
MATRIX["causal_lm Echo"] = lambda: language_model(models.Echo, beams=1, **SIZES)
""",
    "tests/models/echo/test_echo.py": '''
"""Echo has the sizes of its preset."""

from keras_attn.models import Echo


def test_its_preset():
    assert len(Echo.from_preset("echo_tiny", 11).blocks) == 2
''',
}

CONVERTER = {
    "keras_attn/convert/generators/echo.py": '''
"""Conversion of Echo, a GPT-2 with another name for its number of layers."""

from pathlib import Path
from typing import Any

from keras_attn.convert.conversion import Conversion
from keras_attn.convert.generators.gpt2 import convert_gpt2


def convert_echo(folder: Path, config: dict[str, Any]) -> Conversion:
    """Converts an Echo folder."""
    names = {"echoes": "n_layer"}
    return convert_gpt2(folder, {names.get(key, key): value for key, value in config.items()})
''',
    "keras_attn/convert/huggingface.py": """
from keras_attn.convert.generators.echo import convert_echo

CONVERTERS["echo"] = convert_echo
""",
    "keras_attn/cli/convert.py": """
__doc__ = __doc__.replace("  gpt2     causal_lm", "  gpt2     causal_lm\\n  echo     causal_lm")
""",
    "tests/convert/make_echo_golden.py": '''
"""Writes the tiny checkpoint."""

import json
import shutil
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"

if __name__ == "__main__":
    shutil.copytree(GOLDEN / "gpt2", GOLDEN / "echo")
    path = GOLDEN / "echo" / "config.json"
    config = json.loads(path.read_text())
    config |= {"model_type": "echo", "echoes": config.pop("n_layer")}
    path.write_text(json.dumps(config))
''',
    "tests/convert/checkpoints.py": """
CHECKPOINTS["echo"] = GOLDEN / "echo"
""",
    "tests/convert/generators/test_echo.py": '''
"""Echo has the layers of its configuration."""

from keras_attn.convert import convert_huggingface
from tests.convert.checkpoints import CHECKPOINTS


def test_its_layers():
    assert len(convert_huggingface(CHECKPOINTS["echo"]).task.backbone.blocks) == 2
''',
}

TASK = {
    "keras_attn/tasks/rating.py": '''
"""Text to a label of an ordered scale."""

from keras_attn.tasks.classification import ClassificationTask


class RatingTask(ClassificationTask):
    """Gives texts a label of a scale, whose labels are ordered by their names."""

    kind = "rating"
''',
    "keras_attn/tasks/__init__.py": """
from keras_attn.tasks.rating import RatingTask

__all__ += ["RatingTask"]
""",
    "keras_attn/training/task_runs/rating.py": '''
"""Runs of ratings."""

from keras_attn.tasks import RatingTask
from keras_attn.training.task_runs.classification import ClassificationRun


class RatingRun(ClassificationRun):
    """Trains a classifier whose labels are a scale."""

    task_class = RatingTask
''',
    "keras_attn/training/task_runs/__init__.py": """
from keras_attn.training.task_runs.rating import RatingRun

TASK_RUNS["rating"] = RatingRun()
""",
    "keras_attn/tasks/exported/labelling.py": '''
class ExportedRating(ExportedClassification):
    """An exported `RatingTask`."""

    kind = "rating"
''',
    "keras_attn/task_names.py": (
        '    "span_corruption",\n',
        '    "span_corruption",\n    "rating",\n',
    ),
    "keras_attn/cli/train.py": (
        "    classification  ",
        "    rating                 grades\n    classification  ",
    ),
    "keras_attn/models/bert/__init__.py": (
        '"token_classification"',
        '"token_classification", "rating"',
    ),
    "keras_attn/recipes/bert.rating.yaml": """
extends: bert.classification
task: rating
""",
    "tests/export/test_matrix.py": """
from keras_attn.tasks import RatingTask


def rating(encoder, **options):
    made = classification(encoder, **options)
    return RatingTask(made.backbone, made.tokenizer, made.labels, LENGTH)


MATRIX["rating Bert"] = lambda: rating(models.Bert, **BERT)
""",
    "tests/tasks/test_rating.py": '''
"""Ratings are saved and loaded as such."""

from keras_attn.tasks import Task
from tests.export.test_matrix import MATRIX


def test_it_is_saved_as_a_rating(tmp_path):
    task = MATRIX["rating Bert"]()
    task.save(tmp_path / "task")
    loaded = Task.load(tmp_path / "task")
    assert type(loaded) is type(task)
    assert loaded.predict(["a"]) == task.predict(["a"])
''',
    "docs/pages/guides/tasks.md": (
        "| `image_classification` | `scan.png`",
        "| `rating` | `A good film.` | a label | `bert_tiny` | `keras-attn train --task rating "
        "--preset bert_tiny --data labels.tsv --out runs/rating` |\n"
        "| `image_classification` | `scan.png`",
    ),
}

# By the heading of the section: the files, a command to run first, the tests and their selection.
SECTIONS = {
    "A new attention mechanism": (
        MECHANISM,
        None,
        [
            "tests/layers/test_every_layer.py",
            "tests/layers/test_sizes_of_one.py",
            "tests/layers/attention/test_contract.py",
            "tests/layers/attention/test_gradients.py",
            "tests/layers/attention/test_pages.py",
            "tests/documentation/test_pages.py",
            "tests/layers/attention/test_distance_attention.py",
            "tests/benchmarks/test_attention.py",
            "tests/cli/test_train.py",
        ],
        "distance or every or named",
    ),
    "A new model family": (
        FAMILY,
        ["-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"],
        [
            "tests/models/test_at_home_in_keras.py",
            "tests/models/test_named_inputs.py",
            "tests/models/echo",
            "tests/training/test_run_settings.py",
            "tests/tuning/test_search_space.py",
            "tests/cli/test_presets_and_benchmarks.py",
            "tests/export/test_matrix.py",
        ],
        "echo or every",
    ),
    "A new converter": (
        CONVERTER,
        ["tests/convert/make_echo_golden.py"],
        ["tests/convert/test_every_converter.py", "tests/convert/generators/test_echo.py"],
        "echo or every",
    ),
    "A new task": (
        TASK,
        None,
        [
            "tests/tasks/test_rating.py",
            "tests/test_renamed.py",
            "tests/export/test_matrix.py",
            "tests/cli/test_everything.py",
            "tests/training/test_run_settings.py",
        ],
        "rat or every or one_name",
    ),
}


def section(heading):
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def listed(heading):
    """The files in the table of a section."""
    return re.findall(r"^\| `([^`]+)` \|", section(heading), re.MULTILINE)


def put(copy, name, content):
    """Writes a new file, appends to one that exists, or replaces a text in it."""
    path = copy / name
    if isinstance(content, tuple):
        text = path.read_text(encoding="utf-8")
        assert text.count(content[0]) == 1, f"{name}: {content[0]!r}"
        path.write_text(text.replace(*content), encoding="utf-8")
    elif path.exists():
        text = path.read_text(encoding="utf-8")
        text, main, rest = text.partition("\n\nif __name__ ==")
        path.write_text(text + "\n" + content + main + rest, encoding="utf-8")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content.lstrip("\n"), encoding="utf-8")


def run(copy, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    return done.returncode, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("keras_attn", "tests", "docs"):
        shutil.copytree(PROJECT / name, folder / name, ignore=ignored)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(PROJECT / name, folder)
    return folder


@pytest.mark.parametrize("heading", SECTIONS)
def test_an_example_passes_the_tests_that_pick_it_up(heading, copy):
    files, before, tests, selection = SECTIONS[heading]
    assert set(listed(heading)) - NOT_TESTED == set(files) - NOT_TESTED
    for name, content in files.items():
        put(copy, name, content)
    if before:
        status, output = run(copy, *before)
        assert status == 0, output
    status, output = run(
        copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", selection
    )
    assert status == 0, output
    assert re.search(r"\d+ passed", output)
    if heading == "A new task":
        commands = ["-m", "slow", "tests/cli/test_everything.py", "-k", "rating"]
        status, output = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *commands)
        assert status == 0, output


def test_a_mechanism_without_its_case_is_found(copy):
    for name, content in MECHANISM.items():
        if name != "tests/layers/cases.py":
            put(copy, name, content)
    tests = ["tests/layers/test_every_layer.py", "-k", "DistanceAttention"]
    status, output = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert status == 1
    assert "DistanceAttention has no case in tests/layers/cases.py" in output
