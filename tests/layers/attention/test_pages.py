"""The pages about attention mechanisms: what they show runs, and they speak of every layer."""

import re
from pathlib import Path

import pytest

from keras_attn import layers

PAGES = sorted((Path(__file__).parents[3] / "docs/pages/explanation/attention").glob("*.md"))


def test_there_are_pages():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page):
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(example, {})


def test_every_attention_layer_has_a_page():
    text = "".join(page.read_text() for page in PAGES)
    names = [name for name in layers.__all__ if "Attention" in name or "Synthesizer" in name]
    assert [name for name in names if name not in text] == []
