"""Runs on images: a folder to task, measured, resumed, exported, asked, told what is wrong."""

import base64
import json

import pytest
import yaml

from keras_attn import layers
from keras_attn.cli import main
from keras_attn.serving.page_models import model_facts
from keras_attn.tasks import ImageClassificationTask, open_task
from keras_attn.training import run as job
from keras_attn.validation import UserError
from tests.training.task_runs import made

pytestmark = pytest.mark.tensorflow


def called(capsys, *arguments):
    """Status, standard output and standard error of the command line."""
    capsys.readouterr()
    status = main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    numbers = {"steps": 100, "validate_every": 50, "label_smoothing": 0.0}
    folder, results = made.trained(
        "image_classification", tmp_path_factory.mktemp("images"), (120, 30), hold_out=30, **numbers
    )
    return folder / "run", results


@pytest.fixture(scope="module")
def images(run):
    return run[0].parent


@pytest.mark.slow
def test_stripes_are_told_apart(run, images):
    folder, results = run
    task = open_task(folder)
    assert type(task) is ImageClassificationTask
    assert task.labels == ["lying", "upright"]
    assert results["items"] == 60
    assert results["accuracy"] > 90
    samples = json.loads((folder / "samples.json").read_text())[-1]["texts"]
    assert len(samples) == 8
    assert samples[0][0].startswith(str(images / "train"))
    assert samples[0][1] in task.labels
    assert yaml.safe_load((folder / "run.yaml").read_text())["task"] == "image_classification"


def test_evaluated_exported_and_asked(run, images, tmp_path, capsys):
    folder, results = run
    exported, names = tmp_path / "exported", [images / "test" / "upright" / "7.png"] * 2
    assert called(capsys, "export", folder, exported)[0] == 0
    # The page of `serve` shows images of the run, of all labels in turn.
    first, second, *_ = model_facts(exported / "1")["examples"]["serving_default"]
    for row, label in ((first, "lying"), (second, "upright")):
        image = base64.b64decode(row["image_bytes"]["b64"])
        assert image in [path.read_bytes() for path in (images / "train" / label).iterdir()]
    answers = []
    for model in (folder, exported):
        status, output, _ = called(capsys, "evaluate", model, "--data", images / "test")
        assert status == 0
        assert output.split()[:4] == ["images", "60", "accuracy", f"{results['accuracy']:.2f}"]
        options = ("--n-best", 2, "--scores")
        answers.append(called(capsys, "predict", model, *options, *names))
    assert answers[0] == answers[1]
    first, second, *again = [line.split("\t") for line in answers[0][1].splitlines()]
    assert (first[:2], second[:2]) == (["1", "upright"], ["1", "lying"])
    assert [len(line) for line in (first, second)] == [3, 3]
    assert float(first[2]) + float(second[2]) == pytest.approx(1, abs=1e-3)
    assert [line[1:] for line in again] == [first[1:], second[1:]]


def test_test_labels_that_training_has_not_are_told(run, tmp_path, capsys):
    made.image_folder(tmp_path / "test", 2, 3)
    (tmp_path / "test" / "upright").rename(tmp_path / "test" / "aslant")
    status, output, _ = called(capsys, "evaluate", run[0], "--data", tmp_path / "test")
    assert status == 0
    assert output.startswith(f"{tmp_path / 'test'}: 2 of 4 labels are unknown to the model")


def test_what_predict_is_not_told_right(run, images, tmp_path, capsys):
    (tmp_path / "bad.png").write_bytes(b"words")
    good = images / "test" / "lying" / "0.png"
    for name, message in (
        ("absent.png", "absent.png: no such file."),
        ("bad.png", "bad.png: expected a PNG image, found a file that begins with b'words'."),
    ):
        status, _, error = called(capsys, "predict", run[0], good, tmp_path / name)
        assert (status, error) == (2, f"keras-attn: error: {tmp_path / message}\n")


@pytest.mark.slow
def test_training_goes_on_with_other_images(run, images, tmp_path):
    table = tmp_path / "table.tsv"
    names = [f"{images}/test/{label}/{n}.png\t{label}" for label in ("lying",) for n in range(9)]
    table.write_text("\n".join(names) + "\n")
    layer = {"init": str(run[0]), "task": "image_classification", "data": {"train": str(table)}}
    job.train(tmp_path / "run", layer | {"training": made.TRAINING | {"steps": 1}})
    assert open_task(tmp_path / "run").labels == ["lying", "upright"]


@pytest.mark.slow
def test_attention_by_name(images, tmp_path):
    layer = {"preset": "patch_tiny", "data": {"train": str(images / "test")}}
    layer |= {"attention": "random_synthesizer", "model": made.SIZES | {"class_token": True}}
    job.train(tmp_path / "run", layer | {"training": made.TRAINING | {"steps": 1}})
    (block,) = open_task(tmp_path / "run").backbone.encoder.blocks
    assert type(block.attention) is layers.RandomSynthesizer
    assert block.attention.max_length == 5


@pytest.mark.slow
def test_digits_by_the_train_command(tmp_path, capsys):
    status, _, error = called(
        capsys, "train", "--preset", "patch_tiny", "--data", "digits", "--out", tmp_path / "run"
    )
    assert status == 0, error
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["items"] == 382
    assert results["accuracy"] >= 97


def test_a_label_that_training_has_not(images, tmp_path):
    made.image_folder(tmp_path / "valid", 1, 3)
    (tmp_path / "valid" / "upright").rename(tmp_path / "valid" / "aslant")
    data = {"train": str(images / "test"), "valid": str(tmp_path / "valid")}
    layer = {"preset": "patch_tiny", "model": made.SIZES, "training": made.TRAINING, "data": data}
    with pytest.raises(UserError, match=r"Image 1 of .*valid has a label that does not occur"):
        job.train(tmp_path / "run", layer)
