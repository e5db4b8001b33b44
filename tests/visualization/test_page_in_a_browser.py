"""The page clicked through in headless Chromium.

A script that clicks and points is put behind the page's, and what is seen after each step is read
from the document.
"""

import numpy as np
import pytest

from keras_attn.visualization import AttentionMap, LayerAttention, TextAttention
from keras_attn.visualization.html_page import page
from tests.browser import WATCH, seen_in_browser

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

EVIL = "</script><script>document.title='broken'</script>"
WALK = """
<script>
{
const seen = [];
const texts = (query) => [...document.querySelectorAll(query)].map((one) => one.textContent);
const note = (what) => seen.push({
  what,
  caption: byId("caption").textContent, note: byId("note").textContent,
  told: byId("told").textContent, rows: texts("#rows .token"), columns: texts("#columns .token"),
  weights: [...document.querySelectorAll("#columns .token")].map((one) => one.dataset.weight),
  cells: document.querySelectorAll("#matrix .cell").length,
  out: document.querySelectorAll("#matrix .out").length,
  ties: [...document.querySelectorAll(".tie")].filter((one) => one.style.display !== "none").length,
  globals: texts(".token.global").length, buttons: texts("#overview button").length,
});
const click = (name) => byId(name).click();
const point = (name) => byId(name).dispatchEvent(new MouseEvent("mouseenter"));
note("start");
click("cell-1-0"); note("head");
point("row-1"); note("row");
point("column-0"); note("column");
click("cell-1-mean"); note("mean");
click("cell-1-rollout"); note("rollout");
click("tab-decoder"); note("decoder");
click("round-1"); note("round");
click("tab-cross"); point("row-0"); note("cross");
click("tab-alignment"); note("alignment");
point("label-row-1"); note("tie");
const told = document.createElement("pre");
told.id = "seen";
told.textContent = JSON.stringify({ seen, title: document.title, error: window.failed || null });
document.body.append(told);
}
</script>
"""


def layer(weights, rows, columns, **facts):
    weights = np.array(weights, "float32")[None]
    real = [np.ones((1, len(words)), bool) for words in (rows, columns)]
    return LayerAttention(rows, columns, AttentionMap("path", "Kind", weights, *real, **facts))


def example():
    words, written = ["one", EVIL, "three"], ["eins", "zwei"]
    flat, near = np.full((3, 3), 1 / 3), [[0.75, 0.25, 0], [0.5, 0.25, 0.25], [0, 0.5, 0.5]]
    window = {"pattern": {"window": 2}}
    buckets = {"pattern": {"buckets": np.array([[[[0, 1], [1, 1]]]])}, "is_causal": True}
    return TextAttention(
        EVIL,
        "eins zwei",
        {
            "encoder": [
                layer([flat, np.eye(3)], words, words),
                layer([near, near], words, words, **window),
            ],
            "decoder": [layer([[[1, 0], [0.5, 0.5]]], written, written, **buckets)],
            "cross": [layer([[[0.9, 0.1, 0], [0, 0.2, 0.8]]], written, words, crosses=True)],
        },
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    text = (
        page(example())
        .replace("<body>", f"<body><script>{WATCH}</script>", 1)
        .replace("</body>", WALK + "</body>", 1)
    )
    (folder / "page.html").write_text(text, encoding="utf-8")
    found = seen_in_browser(f"file://{folder}/page.html", folder)
    return {step["what"]: step for step in found["seen"]} | {"title": found["title"]}


def test_texts_stay_texts(seen):
    assert seen["title"] == f"Attention: {EVIL}"[:80]
    assert seen["start"]["rows"] == ["one", EVIL, "three"]


def test_layers_and_heads(seen):
    assert seen["start"]["caption"] == "Encoder: layer 1, mean of the heads"
    assert seen["start"]["told"] == "Point at a token to see where it looks."
    assert seen["start"]["buttons"] == 2 * 4  # two heads, their mean, and rollout
    assert (seen["start"]["cells"], seen["start"]["out"]) == (9, 0)
    assert seen["head"]["caption"] == "Encoder: layer 2, head 1"
    assert seen["head"]["note"] == ("Kind (path) · window of 1 positions before and after")
    assert (seen["head"]["cells"], seen["head"]["out"]) == (7, 2)
    assert seen["mean"]["caption"] == "Encoder: layer 2, mean of the heads"


def test_where_a_token_looks(seen):
    assert seen["row"]["told"] == f"{EVIL} looks at one 50%, {EVIL} 25%, three 25%"
    assert seen["row"]["weights"] == ["0.500", "0.250", "0.250"]
    assert seen["column"]["told"] == f"one is looked at by one 75%, {EVIL} 50%"


def test_rollout(seen):
    assert seen["rollout"]["caption"] == "Encoder: layer 2, attention rollout"
    # Of the first layer (1/3 + I/3·2) / 2 nothing is 0, so neither is it in the second.
    assert (seen["rollout"]["cells"], seen["rollout"]["out"]) == (9, 0)


def test_order_and_buckets(seen):
    assert seen["decoder"]["caption"] == "Decoder: layer 1, mean of the heads"
    assert (seen["decoder"]["cells"], seen["decoder"]["out"]) == (3, 1)
    assert "buckets of 2 rounds of hashing" in seen["round"]["note"]


def test_cross_attention_and_alignment(seen):
    assert (seen["cross"]["rows"], seen["cross"]["columns"][0]) == (["eins", "zwei"], "one")
    assert seen["cross"]["told"] == f"eins looks at one 90%, {EVIL} 10%"
    assert seen["alignment"]["caption"] == "Alignment: mean of all layers and heads"
    assert seen["alignment"]["ties"] == 4
    assert seen["tie"]["ties"] == 2
    assert seen["tie"]["told"] == f"zwei looks at three 80%, {EVIL} 20%"
