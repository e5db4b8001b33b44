"""Examples in the pages of the documentation run."""

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs/pages"
# They continue with models, data or checkpoints of the reader's own.
NOT_RUN = {
    "decoding",
    "fine_tuning",
    "forecasting",
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


ROOT = PAGES.parents[1]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)")
FOLDERS = ("", "docs", "saved_models", "tests", ".github")
MARKDOWN = [page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.md"))]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = [link for link in _LINK.findall(text) if ":" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
