"""Folders and tables of labelled images, and their mistakes; ImageExamples; the digits."""

import hashlib

import numpy as np
import pytest
import sklearn.datasets

from keras_attn.data import (
    ImageExamples,
    Pairs,
    batch_dataset,
    hold_out,
    images_to_array,
    load_digits,
    plan_epoch,
    read_labelled_images,
)
from keras_attn.data.images import ImageFile
from keras_attn.validation import UserError
from tests.data.test_images import WHOLE, of, png
from tests.refusals import message_of, refused

pytestmark = pytest.mark.tensorflow

GREYS = {"cat/b.png": 10, "cat/a.PNG": 20, "dog/1.png": 30, "dog/2.png": 40, "a cow/x.png": 50}


def grey(value):
    return png(of(np.full((4, 6), value)))


@pytest.fixture
def folder(tmp_path):
    for name, value in GREYS.items():
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(grey(value))
    (tmp_path / "images" / "README").write_text("words")
    for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
        (tmp_path / "images" / "cat" / name).write_text("words")
    return tmp_path / "images"


def test_a_folder_for_each_label(folder):
    pairs = read_labelled_images(folder)
    assert pairs.targets == ["a cow", "cat", "cat", "dog", "dog"]
    assert pairs.sources == [grey(value) for value in (50, 20, 10, 30, 40)]
    assert (pairs.name, pairs.skipped) == (str(folder), 0)
    assert pairs.sources[0].name == str(folder / "a cow" / "x.png")


@pytest.mark.parametrize("beside", [True, False])
def test_a_table_of_files(folder, tmp_path, beside):
    table = (folder if beside else tmp_path) / ("labels.tsv" if beside else "table.tsv")
    start = "" if beside else "images/"
    table.write_text(f"{start}dog/2.png\tgood\n{start}cat/b.png\tbad one\n")
    pairs = read_labelled_images(folder if beside else table)
    assert pairs.targets == ["good", "bad one"]
    assert pairs.sources == [grey(40), grey(10)]


def test_mistakes_name_the_file(folder, tmp_path):
    bad = folder / "cat" / "c.png"
    bad.write_bytes(WHOLE[:-9])
    assert message_of(read_labelled_images, folder) == (
        f"{bad}: the PNG image is damaged or truncated. Set `skip_bad_lines` (--skip-bad-lines) to "
        "leave such files out."
    )
    (folder / "dog" / "notes.txt").write_text("words")
    (folder / "dog" / "photo.png").write_bytes(b"\xff\xd8\xff\xe0")
    pairs = read_labelled_images(folder, skip_bad_files=True)
    assert (len(pairs), pairs.skipped) == (5, 3)
    bad.unlink()
    (folder / "dog" / "notes.txt").unlink()
    refused(
        r"photo.png: expected a PNG image, found JPEG: convert it", read_labelled_images, folder
    )
    (folder / "dog" / "inner").mkdir()
    refused(r"dog has the folder 'inner'", read_labelled_images, folder, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dog/3.png\tgood", r"dog/3.png: no such file\. Set `skip_bad_lines`"),
        ("dog/2.png good", "labels.tsv, line 2, column 15: expected file<TAB>label, found no"),
    ],
)
def test_mistakes_in_a_table(folder, line, message):
    (folder / "labels.tsv").write_text(f"cat/b.png\tbad\n{line}\n")
    refused(message, read_labelled_images, folder)
    pairs = read_labelled_images(folder, skip_bad_files=True)
    assert (pairs.targets, pairs.skipped) == (["bad"], 1)


def test_folders_that_cannot_be_meant(folder, tmp_path):
    refused("absent: no such folder or file", read_labelled_images, tmp_path / "absent")
    (folder / "empty").mkdir()
    refused("empty: expected the PNG files of this label, found none", read_labelled_images, folder)
    refused("cat/a.PNG: images must be in folders named", read_labelled_images, folder / "cat")
    with pytest.raises(UserError, match="expected a folder for each label, or labels.tsv, found n"):
        read_labelled_images(folder / "empty")
    (folder / "empty" / "bad").mkdir()
    (folder / "empty" / "bad" / "x.png").write_text("words")
    with pytest.raises(UserError, match="no image is left because all 1 files are malformed"):
        read_labelled_images(folder / "empty", skip_bad_files=True)


def test_equal_images_are_held_out_together():
    images = [ImageFile(grey(value % 5), f"{value}.png") for value in range(20)]
    rest, held = hold_out(Pairs(images, ["x"] * 20), 2, seed=1)
    assert (len(rest), len(held)) == (12, 8)
    assert not set(rest.sources) & set(held.sources)


def made_examples(**arguments):
    pairs = Pairs([grey(value) for value in (0, 51, 255)], ["b", "a", "b"], "made")
    layout = {"image_size": (2, 3), "channels": 1, "positions": 6} | arguments
    return ImageExamples.from_pairs(pairs, ["a", "b"], **layout)


def test_batches_of_images():
    examples = made_examples()
    assert examples.lengths.tolist() == [[6], [6], [6]]
    inputs, labels = examples.assemble(np.array([1, 2]), (3, 6))
    assert inputs["images"].dtype == np.float32
    np.testing.assert_allclose(inputs["images"][:, 1, 2, 0], [-0.6, 1, 0], atol=1e-6)
    assert labels.tolist() == [1, 2, 0]
    plan = plan_epoch(examples, 13, seed=3)  # two images of six positions
    assert sorted(map(len, plan)) == [1, 2]
    batches = list(batch_dataset(examples, plan))
    assert sorted(label for _, labels in batches for label in labels.numpy()) == [1, 2, 2]
    assert batches[0][0]["images"].shape[1:] == (2, 3, 1)


def test_mistakes_in_examples():
    assert message_of(
        ImageExamples.from_pairs, Pairs([grey(1)], ["c"], "made"), ["a", "b"], (2, 3), 1, 6
    ) == (
        "Image 1 of made has a label that does not occur in the training data. "
        "Received: 'c'; the labels are a, b."
    )
    refused("1 or 3. Received: channels=2", made_examples, channels=2)
    refused("must hold the longest image.*batch_tokens=5", plan_epoch, made_examples(), 5, seed=1)


def test_the_digits_of_scikit_learn():
    parts = load_digits()
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 1225,
        "validation": 190,
        "test": 382,
    }
    judge = sklearn.datasets.load_digits()
    seen = set()
    for name, part in parts.items():
        pixels = images_to_array(part.sources, 8, 8, 1)[..., 0]
        for source, image, label in zip(part.sources, pixels, part.targets, strict=True):
            number = int(source.name.split()[1])
            seen.add(number)
            np.testing.assert_allclose(image / 255, judge.images[number] / 16, atol=0.5 / 255)
            assert label == str(judge.target[number])
            content = bytes(int(value) for value in judge.images[number].ravel())
            bucket = int(hashlib.sha256(content).hexdigest()[:16], 16) % 100
            assert name == ("test" if bucket < 20 else "validation" if bucket < 30 else "train")
    assert seen == set(range(1797))


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    refused(r"pip install 'keras_attn\[images\]'", load_digits)
