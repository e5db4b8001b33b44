"""Examples in the pages of the documentation run."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs/pages"
# They continue with models, data or checkpoints of the reader's own.
NOT_RUN = {
    "decoding",
    "fine_tuning",
    "hugging_face",
    "index",
    "python",
    "quantization_and_lora",
    "serving",
    "tuning",
    "visualization",
}
EXAMPLES = {
    page.relative_to(PAGES).with_suffix("").as_posix(): examples
    for page in sorted(PAGES.rglob("*.md"))
    if (examples := re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
}

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("page", [name for name in EXAMPLES if Path(name).name not in NOT_RUN])
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for example in EXAMPLES[page]:
        exec(example, names)


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_are_python(page):
    for example in EXAMPLES[page]:
        compile(example, page, "exec")


def test_no_page_is_left_out_for_nothing():
    assert {Path(name).name for name in EXAMPLES} >= NOT_RUN
