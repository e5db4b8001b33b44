"""The pages about attention mechanisms speak of every layer."""

from pathlib import Path

from keras_attn import layers

PAGES = (Path(__file__).parents[3] / "docs/pages/explanation/attention").glob("*.md")


def test_every_attention_layer_has_a_page():
    text = "".join(page.read_text() for page in PAGES)
    names = [name for name in layers.__all__ if "Attention" in name or "Synthesizer" in name]
    assert [name for name in names if name not in text] == []
