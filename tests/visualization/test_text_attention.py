"""Tokens at rows and columns, pictures, pages and images of TensorBoard."""

import base64
import html.parser
import json
import struct

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import PairExamples, Pairs
from keras_attn.training import Trainer
from keras_attn.visualization import (
    AttentionImages,
    AttentionMap,
    LayerAttention,
    TextAttention,
    draw_attention,
    text_attention,
    write_page,
)
from keras_attn.visualization.html_page import page
from keras_attn.visualization.picture import _lines
from keras_attn.visualization.readings import readable
from tests.refusals import refused
from tests.tasks.made import make_task
from tests.training.stand_in import settings
from tests.visualization import made

pytestmark = pytest.mark.tensorflow

EVIL = "</script><script>alert(1)</script><!-- &amp; \u2028 \"'"


def attention_of(rows, columns, **facts):
    """Made-up weights of one layer, two heads, between given words."""
    weights = np.random.default_rng(7).dirichlet(np.ones(len(columns)), (1, 2, len(rows)))
    real = (np.ones((1, len(rows)), bool), np.ones((1, len(columns)), bool))
    found = AttentionMap("layer", "Attention", weights.astype("float32"), *real, **facts)
    return LayerAttention(rows, columns, found)


def test_a_pair_of_texts():
    found = text_attention(make_task(), "abé", "AA D")
    assert list(found.groups) == ["encoder", "decoder", "cross"]
    source = ["a", "b", "é", "</s>"]
    (encoder,), (decoder,), (cross,) = found.groups.values()
    assert (encoder.rows, encoder.columns) == (source, source)
    assert (decoder.rows, decoder.columns) == (["<s>", "AA", "D"], ["<s>", "AA", "D"])
    assert (cross.rows, cross.columns) == (["AA", "D", "</s>"], source)
    assert found.target == "AA D"
    for each in (encoder, decoder, cross):
        assert each.weights.shape == (2, len(each.rows), len(each.columns))
        np.testing.assert_allclose(each.weights.sum(axis=-1), 1, rtol=1e-5)
    assert found.rollout("encoder").shape == (1, 4, 4)
    assert found.rollout("cross") is None
    np.testing.assert_allclose(found.alignment(), cross.weights.mean(axis=0), rtol=1e-6)


def test_the_target_is_what_the_task_predicts():
    task = make_task()
    found = text_attention(task, "fedcba")
    assert found.target == task.predict(["fedcba"])[0]


def test_predicted_tokens_stay_as_they_were_written():
    """Endings without a word before them, which read again are one unknown word."""
    task = made.translator()
    text = task.predict(["cab"])[0]
    found = text_attention(task, "cab")
    assert (found.target, text) == ("gygygy", "gygygy")
    assert found.groups["cross"][0].rows == ["##gy", "##gy", "##gy", "[SEP]"]
    assert found.groups["decoder"][0].rows == ["[CLS]", "##gy", "##gy", "##gy"]
    assert text_attention(task, "cab", text).groups["cross"][0].rows == ["[UNK]", "[SEP]"]


@pytest.mark.parametrize("kind", ["language_model", "classifier", "embedder", "masked", "tagger"])
def test_other_texts(kind):
    task = getattr(made, kind)()
    text = "a b" if kind in ("language_model", "classifier") else "a doggy [MASK]"
    tokens = {
        "language_model": ["<s>", "a", "␣", "b"],
        "classifier": ["a", "␣", "b", "</s>"],
    }.get(kind, ["[CLS]", "a", "dog", "##gy", "[MASK]", "[SEP]"])
    found = text_attention(task, text)
    ((group, (layer,)),) = found.groups.items()
    assert group == ("decoder" if kind == "language_model" else "encoder")
    assert layer.rows == layer.columns == tokens
    if kind != "language_model":
        refused("is for tasks that generate text", text_attention, task, text, "a")


def test_a_language_model_reads_a_continuation_too():
    (layer,) = text_attention(made.language_model(), "ab", "ca").groups["decoder"]
    assert layer.rows == ["<s>", "a", "b", "c", "a"]


def test_an_image_has_patches(tmp_path):
    task = made.image_classifier()
    (layer,) = text_attention(task, made.write_image(tmp_path / "a.png")).groups["encoder"]
    assert layer.rows == ["[class]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a" * 30, "AA", r"^The source text must have at most 10 tokens. Received: 30$"),
        ("a", "AA " * 20, r"^The target text must have at most 6 tokens. Received: 20$"),
        ("\udcff", None, "must be Unicode text"),
    ],
)
def test_texts_that_cannot_be_read(text, target, message):
    refused(message, text_attention, make_task(), text, target)


def test_what_cannot_be_seen_is_written():
    assert readable(" a\n\x00") == "␣a⏎U+0000"
    assert readable("") == "∅"
    assert readable("né日") == "né日"


# === Pictures ===


def size_of(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_a_picture_of_forty_tokens_has_room_for_each(tmp_path):
    words = [f"$word_{number}" for number in range(40)]
    found = TextAttention("x $y", "z", {"cross": [attention_of(words, words, crosses=True)]})
    draw_attention(found, tmp_path / "a.png")
    width, height = size_of(tmp_path / "a.png")
    # Three panels and the alignment below them, at least 15 pixels for a line of 8 points.
    assert width > 3 * 40 * 15
    assert height > 2 * 40 * 15
    draw_attention(found, tmp_path / "b.png", "cross", 1, 2)
    assert size_of(tmp_path / "b.png")[0] < width / 2


def test_a_picture_shows_what_is_chosen(tmp_path):
    layers = [attention_of(["a"], ["b", "c"]), attention_of(["a"], ["b", "c"])]
    found = TextAttention("", None, {"encoder": layers})
    titles = [[panel.title for panel in line] for line in _lines(found, None, None, None)]
    assert titles == [
        ["encoder 1, head 1", "encoder 1, head 2", "encoder 1, mean"],
        ["encoder 2, head 1", "encoder 2, head 2", "encoder 2, mean"],
    ]
    assert [panel.title for panel in _lines(found, None, 2, 1)[0]] == ["encoder 2, head 1"]
    for options, message in (
        ({"group": "cross"}, "is not available. Available: encoder. Received: group='cross'"),
        ({"layer": 3}, "layer does not exist. Received: layer=3"),
        ({"head": 3}, "head does not exist. Received: head=3, heads=2"),
    ):
        refused(message, draw_attention, found, tmp_path / "a.png", **options)
    many = [str(number) for number in range(2000)]
    found = TextAttention("", None, {"encoder": [attention_of(many, many)]})
    refused("too large", draw_attention, found, "a.png")


# === Pages ===


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [("", {})], {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        tag, attributes = self.tags[-1]
        name = attributes.get("id", tag)
        self.texts[name] = self.texts.get(name, "") + data


def test_a_page_holds_everything_and_texts_stay_texts(tmp_path):
    found = TextAttention(EVIL, EVIL, {"cross": [attention_of([EVIL], [EVIL, "b"], crosses=True)]})
    write_page(found, tmp_path / "a.html")
    elements = Elements((tmp_path / "a.html").read_text())
    assert [tag for tag, _ in elements.tags].count("script") == 2
    for tag, attributes in elements.tags:
        assert tag not in ("link", "img", "iframe")
        assert not {"src", "href"} & set(attributes)
    assert elements.texts["title"].strip() == f"Attention: {EVIL}"[:80]
    data = json.loads(elements.texts["data"])
    assert (data["text"], data["target"]) == (EVIL, EVIL)
    (layer,) = data["groups"][0]["layers"]
    assert (layer["rows"], layer["columns"]) == ([EVIL], [EVIL, "b"])
    numbers = np.frombuffer(base64.b64decode(layer["weights"]["numbers"]), "<u2") / 65535
    weights = found.groups["cross"][0].weights
    np.testing.assert_allclose(numbers.reshape(layer["weights"]["shape"]), weights, atol=1e-5)


def test_a_page_knows_patterns():
    words = list("abcde")
    buckets = np.array([[[[0, 1, 0, 1, 0]], [[1, 1, 1, 0, 0]]]])
    hashed = attention_of(words, words, pattern={"buckets": buckets})
    near = attention_of(words, words, is_causal=True, pattern={"window": 3, "globals": 1})
    text = page(TextAttention("", None, {"encoder": [hashed, near]}))
    first, second = json.loads(Elements(text).texts["data"])["groups"][0]["layers"]
    assert first["buckets"] == buckets[0].tolist()
    assert first["note"] == "buckets of 1 rounds of hashing"
    assert second["note"] == "window of 2 positions before; 1 global"
    assert second["globals"] == 1
    assert second["reach"]["shape"] == [1, 5, 5]


# === TensorBoard ===


def images(folder):
    """Steps of the images by their tags."""
    found = {}
    for file in folder.glob("**/events*"):
        for record in tf.data.TFRecordDataset(str(file)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "images":
                    width, height, png = value.tensor.string_val
                    assert png.startswith(b"\x89PNG")
                    assert int(width) > 50 < int(height)
                    found.setdefault(value.tag, []).append(event.step)
    return found


def test_images_of_a_task_while_keras_fits(tmp_path):
    task = make_task()
    inputs, labels = task.teacher_forced(tf.constant(["abc", "de"]), tf.constant(["AA", "B"]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    task.backbone.compile("sgd", loss, jit_compile=False)
    looks = AttentionImages(tmp_path, task, ["abc"], every=2)
    task.backbone.fit(inputs, labels, epochs=2, verbose=0, callbacks=[looks])
    groups = ("encoder", "decoder", "cross")
    assert images(tmp_path) == {f"attention/1/{group}": [0, 2] for group in groups}


@pytest.mark.slow
def test_images_while_a_trainer_trains(tmp_path):
    weights = []
    for number, look in enumerate((False, True)):
        task = make_task(model={"dropout": 0.0})
        pairs = Pairs(["abc", "fed", "a"], ["AA B", "CH", "D"], "made")
        examples = PairExamples.from_pairs(pairs, task.source_tokenizer, task.target_tokenizer)
        looks = [AttentionImages(tmp_path / "images", task, ["abc"])] if look else []
        folder = tmp_path / f"run{number}"
        Trainer(task, settings(), folder, looks).fit(examples)
        weights.append(task.backbone.get_weights())
    assert images(tmp_path / "images")["attention/1/cross"] == [0, 1, 2]
    for plain, looked in zip(*weights, strict=True):
        np.testing.assert_array_equal(plain, looked)


def test_images_of_any_model(tmp_path):
    model = make_task().backbone
    inputs = {"source_ids": np.array([[4, 5, 2]]), "target_ids": np.array([[1, 4]])}
    looks = AttentionImages(tmp_path, inputs=inputs)
    looks.set_model(model)
    looks.on_train_begin()
    looks.on_train_end()
    assert sorted(images(tmp_path)) == [f"attention/1/{n}" for n in ("cross", "decoder", "encoder")]


def test_images_need_something_to_look_at(tmp_path):
    for options in ({}, {"task": make_task()}, {"texts": ["a"]}):
        refused("need either a `task` with `texts`", AttentionImages, tmp_path, **options)
    arguments = (tmp_path, make_task(), ["a"], ["A", "B"])
    refused("one target. Received: texts=1, targets=2", AttentionImages, *arguments)
