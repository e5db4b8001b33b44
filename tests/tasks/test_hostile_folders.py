"""Task folders that are damaged, or made to harm.

Each is refused in one line, before memory or time is spent.
"""

import json
import os
import resource
import shutil
import signal

import h5py
import numpy as np
import pytest

from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.tasks.made import make_task

pytestmark = pytest.mark.tensorflow

WEIGHTS = "model.weights.h5"
DIGITS = "9" * 5_000


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "task"
    make_task().save(folder)
    return folder


@pytest.fixture
def copied(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "task")


def changed(name, change):
    """A damage to a JSON file."""

    def damage(folder):
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return damage


def described(**values):
    return changed("task.json", lambda task: task.update(values))


def decoding(**settings):
    return changed("task.json", lambda task: task["decoding"].update(settings))


def sized(**sizes):
    return changed("task.json", lambda task: task["backbone"]["config"].update(sizes))


def truncated(name):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def written(name, text):
    return lambda folder: (folder / name).write_text(text)


def device(name, target="/dev/zero"):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def outside(name):
    """Moves a file or folder next to the task folder, and puts a link in its place."""

    def damage(folder):
        shutil.move(folder / name, folder.parent / "outside")
        (folder / name).symlink_to(folder.parent / "outside")

    return damage


def other(name, make=lambda path: None):
    def damage(folder):
        (folder / name).unlink()
        make(folder / name)

    return damage


def weights(change):
    def damage(folder):
        with h5py.File(folder / WEIGHTS, "r+") as file:
            names = []
            file.visititems(lambda name, item: names.append(name) if "vars/" in name else None)
            change(file, names[1])

    return damage


def replaced(file, name, **arguments):
    del file[name]
    file.create_dataset(name, **arguments)


def linked(file, name):
    del file[name]
    file[name] = h5py.ExternalLink("/etc/other.h5", "/weights")


def assets(name):
    return changed(
        "assets/source/tokenizer.json", lambda content: content.update(assets={name: "00"})
    )


OUT = "may only refer to files in its folder"
DAMAGES = {
    "a role above": (described(tokenizers=["../../task/assets/source", "target"]), OUT),
    "an absolute role": (described(tokenizers=["/etc", "target"]), OUT),
    "a role that is no text": (described(tokenizers=[7, "target"]), OUT),
    "an asset above": (assets("../../../x"), OUT),
    "an absolute asset": (assets("/etc/passwd"), OUT),
    "an asset with NUL": (assets("a\0b"), OUT),
    "an asset of Windows": (assets("..\\x"), OUT),
    "a linked asset": (
        lambda folder: (
            assets("link")(folder),
            (folder / "assets/source/link").symlink_to("/etc/passwd"),
        ),
        "this is a link to another place",
    ),
    "an asset without an end": (
        lambda folder: (
            assets("link")(folder),
            (folder / "assets/source/link").symlink_to("/dev/zero"),
        ),
        "this is a link to another place",
    ),
    "a device": (device("task.json"), "this is a link to another place"),
    "a linked task.json": (
        outside("task.json"),
        "a task folder may only refer to files in its folder",
    ),
    "linked weights": (outside(WEIGHTS), "a task folder may only refer to files in its folder"),
    "linked assets": (outside("assets"), "a task folder may only refer to files in its folder"),
    "a linked tokenizer": (
        outside("assets/source"),
        "`tokenizers` may only refer to files in its fold",
    ),
    "a linked tokenizer.json": (
        outside("assets/source/tokenizer.json"),
        "a tokenizer's folder may only refer to files in its folder",
    ),
    "a link to itself": (
        lambda folder: (
            shutil.rmtree(folder / "assets/source"),
            (folder / "assets/source").symlink_to("source"),
        ),
        "this is a link to another place",
    ),
    "more tokens than the model knows": (
        changed(
            "assets/source/tokenizer.json",
            lambda content: content["config"]["characters"].extend("XYZ"),
        ),
        "must hold every token of the tokenizer. Received: tokenizer='source', tokens=",
    ),
    "complex weights": (
        weights(
            lambda file, name: replaced(file, name, data=np.zeros(file[name].shape, "complex64"))
        ),
        "h5 is damaged: weights must be real numbers",
    ),
    "a pipe": (other("task.json", os.mkfifo), "task.json: expected a regular file."),
    "weights of a device": (device(WEIGHTS), "this is a link to another place"),
    "weights of a folder": (other(WEIGHTS, os.mkdir), "h5: expected a regular file"),
    "weights of a pipe": (other(WEIGHTS, os.mkfifo), "h5: expected a regular file"),
    "no weights": (other(WEIGHTS), "h5: no such file"),
    "deep": (written("task.json", "[" * 50_000 + "]" * 50_000), "nested too deeply"),
    "deeper than 100": (written("task.json", "[" * 200 + "]" * 200), "at most 100 levels"),
    "deep tokenizer": (
        written("assets/source/tokenizer.json", "[" * 50_000 + "]" * 50_000),
        "source/tokenizer.json: the JSON is nested too deeply",
    ),
    "a key twice": (written("task.json", '{"task": 1, "task": 2}'), "duplicate key 'task'"),
    "no task": (described(task=None), "task.json: `task` must be text. Received: task=None"),
    "no tokenizers": (
        described(tokenizers=None),
        "task.json: `tokenizers` must be a list. Received: tokenizers=None",
    ),
    "no model": (
        changed("task.json", lambda task: task.pop("backbone")),
        "task.json: `backbone` must be an object. Received: backbone=None",
    ),
    "a long number": (written("task.json", f'{{"a": {DIGITS}}}'), "a number has too many digits"),
    "many layers": (sized(num_layers=10**9), "`num_layers`=1000000000: at most 1,000 layers of a"),
    "more layers than arrays": (sized(num_layers=900), "must not exceed the .* arrays of the wei"),
    "a fraction of a layer": (sized(num_layers=1e9), "must be a positive integer"),
    "a wide model": (sized(hidden_dim=10**9), "at most 12,000,000,000 parameters of a model"),
    "wider than its file": (sized(hidden_dim=20_000, intermediate_dim=20_000), "than the weights"),
    "a large vocabulary": (sized(vocabulary_size=10**12), "at most 12,000,000,000 parameters"),
    "many heads": (sized(num_heads=10**9, hidden_dim=10**9), "at most 12,000,000,000 parameters"),
    "too large a number": (sized(hidden_dim=10**30), "must be less than 2\\*\\*63"),
    "many beams": (decoding(beams=10**9), "`beams`=1000000000: at most 1,024 beams"),
    "long texts": (
        decoding(max_length=10**9),
        "`max_length`=1000000000: at most 262,144 tokens of all hypotheses of a text",
    ),
    "a long rule": (
        decoding(no_repeat_ngram=10**9),
        "`no_repeat_ngram`=1000000000: at most 256 tokens of `no_repeat_ngram` or of a banned",
    ),
    "a lost weight": (weights(lambda file, name: file.pop(name)), "is of another model: it lacks"),
    "another shape": (
        weights(lambda file, name: replaced(file, name, data=np.zeros((3, 5), "float32"))),
        r"must be of shape \(.*\), and is of \(3, 5\)\.",
    ),
    "one weight more": (
        weights(lambda file, name: file.create_dataset("layers/more/vars/0", data=[1.0])),
        "the model has no layers/more/vars/0",
    ),
    "an array larger than the file": (
        weights(
            lambda file, name: replaced(file, name, shape=(10**9, 10**3), dtype="f4", chunks=True)
        ),
        "its arrays exceed the file",
    ),
    "a link to another file": (weights(linked), "an array refers to elsewhere"),
    "an array of a device": (
        weights(
            lambda file, name: replaced(
                file, name, shape=(3,), dtype="f4", external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)]
            )
        ),
        "an array refers to elsewhere",
    ),
    "no description": (other("task.json"), "is not a task folder: it has no task.json"),
    "cut description": (truncated("task.json"), "task.json: valid JSON is expected"),
    "binary description": (
        lambda folder: (folder / "task.json").write_bytes(b"\xff\x00"),
        "task.json: expected a UTF-8 file",
    ),
    "a list": (written("task.json", "[]"), "a JSON object is expected"),
    "later version": (described(format_version=7), "must be 1. Received: format_version=7"),
    "unknown task": (described(task="seq3seq"), "Did you mean 'seq2seq'"),
    "odd backbone": (described(backbone=5), "task.json: `backbone` must be an object"),
    "unknown class": (
        described(backbone={"class_name": "X", "module": "x", "config": {}}),
        "task.json is damaged",
    ),
    "unknown argument": (sized(colour=3), "task.json is damaged: .*colour"),
    "wrong size": (sized(num_heads=3), "num_heads=3, hidden_dim=8"),
    "odd decoding": (described(decoding={"beam": 1}), "task.json is damaged: .*'beam'"),
    "wrong decoding": (described(decoding={"beams": 0}), "beams=0"),
    "cut weights": (
        truncated(WEIGHTS),
        "weights.h5 is damaged: Unable to synchronously open file .truncated file",
    ),
    "no file of weights": (
        written(WEIGHTS, "hello"),
        "weights.h5 is damaged: it is not an HDF5 file.",
    ),
    "other weights": (
        sized(hidden_dim=12),
        r"weights.h5 is of another model: .* must be of shape \(.*12.*\), and is of \(.*8.*\)\.",
    ),
    "more weights": (
        sized(num_layers=2),
        "weights.h5 is of another model: it lacks layers/.*/vars/0, of shape",
    ),
    "no tokenizer": (other("assets/target/tokenizer.json"), "target"),
    "cut tokenizer": (truncated("assets/source/tokenizer.json"), "source"),
    "NaN": (
        weights(
            lambda file, name: file[name].write_direct(np.full(file[name].shape, np.nan, "f4"))
        ),
        r"weights .*/\w+ have \d+ values that are not finite",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_harms_is_refused_in_one_line(copied, name):
    damage, message = DAMAGES[name]
    damage(copied)
    with pytest.raises(UserError, match=message) as caught:
        Seq2SeqTask.load(copied)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_task_folder_itself_may_be_a_link_and_files_to_its_own(copied, tmp_path):
    (copied / WEIGHTS).rename(copied / "kept.h5")
    (copied / WEIGHTS).symlink_to("kept.h5")
    (tmp_path / "link").symlink_to(copied)
    assert Seq2SeqTask.load(tmp_path / "link").decoding == Seq2SeqTask.load(copied).decoding


def test_the_digest_of_a_foreign_file_is_not_told(copied):
    assets("symbols.txt")(copied)
    (copied / "assets/source/symbols.txt").write_text("secret")
    with pytest.raises(UserError, match="its SHA-256 must be") as caught:
        Seq2SeqTask.load(copied)
    assert "2bb80d53" not in str(caught.value)  # how that of "secret" begins


def test_weights_that_are_not_finite_are_not_exported(tmp_path):
    from keras_attn.export import export_saved_model

    task = make_task()
    weight = task.backbone.trainable_weights[0]
    values = weight.numpy()
    values[1, 2] = np.inf
    weight.assign(values)
    with pytest.raises(UserError, match=rf"{weight.path} have 1 values that are not finite"):
        export_saved_model(task, tmp_path / "exported", n_best=2)
    assert not (tmp_path / "exported").exists()


def test_a_disk_that_is_full_is_one_line_and_leaves_the_old_task(tmp_path):
    """Files may not grow beyond a size: HDF5 has errors of its own for it."""
    task = make_task()
    task.save(tmp_path / "task")
    before = (tmp_path / "task" / WEIGHTS).read_bytes()
    larger = make_task(model={"hidden_dim": 32})
    handler, limits = (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
        (resource.getrlimit(resource.RLIMIT_FSIZE)),
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(UserError, match=f"cannot be saved in {tmp_path}/task: ") as caught:
            larger.save(tmp_path / "task")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["task"]
    assert (tmp_path / "task" / WEIGHTS).read_bytes() == before


def test_limits_of_settings_can_be_raised(monkeypatch):
    monkeypatch.setenv("KERAS_ATTN_MAX_HYPOTHESES", "5000")
    assert DecodingSettings(beams=5000, max_length=50).beams == 5000
    monkeypatch.setenv("KERAS_ATTN_MAX_HYPOTHESES", "3")
    refused("`beams`=4: at most 3 beams", DecodingSettings, beams=4)
