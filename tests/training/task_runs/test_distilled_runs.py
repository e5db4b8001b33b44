"""Runs that learn from teachers: what they record, keep, refuse, and learn."""

import shutil

import numpy as np
import pytest
import yaml

from keras_attn.tasks import Task
from keras_attn.training import run as job
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.teachers import checksum
from tests.refusals import refused
from tests.training.made_run import run_settings, write_parts
from tests.training.task_runs.made import base, write_data

pytestmark = pytest.mark.tensorflow


def taught(settings, *teachers, **how):
    return settings | {"distillation": {"teachers": list(map(str, teachers)), **how}}


def train(out, settings, **options):
    return job.train(out, settings, reports=False, **options)


def weights(run):
    return Task.load(run / "task").backbone.get_weights()


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Two seq2seq teachers of different weights, and their data."""
    folder = tmp_path_factory.mktemp("words")
    data = write_parts(folder)
    for seed in (1, 2):
        train(folder / f"teacher{seed}", run_settings(data, seed=seed))
    return folder, data


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    data = {"train": write_data("classification", folder / "train", 200, 1), "hold_out": 40}
    train(folder / "teacher", base("classification", data, epochs=6))
    return folder, data


@pytest.mark.slow
def test_run_records_its_teachers_and_resumes_to_the_bit(words, tmp_path, capsys):
    folder, data = words
    teachers = [folder / "teacher1", folder / "teacher2"]
    whole = taught(run_settings(data, steps=11, epochs=None, checkpoint_every=4), *teachers)
    train(tmp_path / "whole", whole)
    assert "/teacher2: soft targets of weight 0.5 at temperature 1\n" in capsys.readouterr().out
    recorded = yaml.safe_load((tmp_path / "whole" / "run.yaml").read_text())["distillation"]
    assert recorded == {
        "teachers": list(map(str, teachers)),
        "kind": "word",
        "temperature": 1.0,
        "weight": 0.5,
        "targets": "replace",
        "beams": None,
        "vectors": "cosine",
        "checksums": [checksum(Task.load(teacher)) for teacher in teachers],
    }
    assert len(set(recorded["checksums"])) == 2
    part = taught(run_settings(data, steps=5, epochs=None), *teachers)
    train(tmp_path / "part", part)
    longer = {"training": {"steps": 11}}
    job.train(tmp_path / "part", longer, resume=True, reports=False)
    for ours, theirs in zip(weights(tmp_path / "part"), weights(tmp_path / "whole"), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Without teachers the weights are others, so that the equality above means something.
    train(tmp_path / "alone", run_settings(data, steps=11, epochs=None))
    others = zip(weights(tmp_path / "alone"), weights(tmp_path / "whole"), strict=True)
    assert any(np.abs(one - other).max() > 1e-3 for one, other in others)
    # The state of a run has the student alone.
    size = sum(weight.size for weight in weights(tmp_path / "whole"))
    arrays = max((tmp_path / "whole" / "checkpoints").glob("step-*")) / "state.safetensors"
    assert arrays.stat().st_size < 4 * 4 * size + 20_000  # weights, two moments and an average


@pytest.mark.slow
def test_other_teacher_is_refused_and_a_moved_one_is_not(words, tmp_path):
    folder, data = words
    shutil.copytree(folder / "teacher1", tmp_path / "teacher")
    settings = taught(run_settings(data, steps=2, epochs=None), tmp_path / "teacher")
    train(tmp_path / "run", settings)
    (tmp_path / "teacher").rename(tmp_path / "moved")
    moved = {"distillation": {"teachers": [str(tmp_path / "moved")]}, "training": {"steps": 4}}
    assert train(tmp_path / "run", moved, resume=True)["items"] > 0
    other = {"distillation": {"teachers": [str(folder / "teacher2")]}}
    refused(
        "The teachers must be those that the run began with.*teacher2",
        train,
        tmp_path / "run",
        other,
        resume=True,
    )
    shutil.rmtree(tmp_path / "moved")
    shutil.copytree(folder / "teacher2", tmp_path / "moved")
    refused(
        "The teachers must be those that the run began with.*moved",
        train,
        tmp_path / "run",
        {},
        resume=True,
    )
    refused(
        "A run that is resumed keeps these settings.*distillation.weight=0.25",
        train,
        tmp_path / "run",
        {"distillation": {"weight": 0.25}},
        resume=True,
    )


@pytest.mark.slow
def test_student_has_the_tokenizers_and_labels_of_the_teacher(labels, tmp_path):
    folder, _ = labels
    few = tmp_path / "few.tsv"  # letters and labels that are not all of the teacher's
    few.write_text("".join(f"{'ab' * (n % 3 + 1)}{'b' * n}\twithout\n" for n in range(30)))
    settings = base("classification", {"train": str(few), "hold_out": 5}, epochs=1)
    train(tmp_path / "run", taught(settings, folder / "teacher", temperature=3))
    student, teacher = Task.load(tmp_path / "run"), Task.load(folder / "teacher")
    assert student.labels == teacher.labels == ["with x", "without"]
    assert student.tokenizer.digest == teacher.tokenizer.digest
    few.write_text(few.read_text().replace("without", "unheard of", 3))
    refused(
        "The teacher must know every label of.*unheard of",
        train,
        tmp_path / "other",
        taught(settings, folder / "teacher"),
    )


@pytest.mark.slow
def test_other_tokenizers_labels_and_tasks_are_refused(labels, words, tmp_path):
    folder, data = labels
    settings = base("classification", data, epochs=1)
    refused(
        "A teacher must be a task of kind classification.*seq2seq",
        train,
        tmp_path / "1",
        taught(settings, words[0] / "teacher1"),
    )
    refused("does not exist", train, tmp_path / "2", taught(settings, tmp_path / "nowhere"))
    # A task to start from has its own tokenizers.
    other = tmp_path / "other.tsv"
    other.write_text("".join(f"{'xyz'[n % 3] * 3}{'z' * (n // 3)}\t{n % 2}\n" for n in range(30)))
    train(tmp_path / "start", base("classification", {"train": str(other), "hold_out": 5}, steps=1))
    start = {"init": str(tmp_path / "start"), "data": data, "training": {"steps": 1}}
    refused(
        "Teacher and student must have the same tokenizers.*text",
        train,
        tmp_path / "3",
        taught(start, folder / "teacher"),
    )
    # So has the second teacher.
    refused(
        "Teacher and student must have the same tokenizers.*text",
        train,
        tmp_path / "4",
        taught(settings, folder / "teacher", tmp_path / "start"),
    )


def test_segments_matter_for_pairs_alone(labels, tmp_path):
    folder, data = labels
    settings = base("classification", data, steps=1) | {"preset": "bert_tiny"}
    train(tmp_path / "run", taught(settings, folder / "teacher"))
    student, teacher = Task.load(tmp_path / "run"), Task.load(folder / "teacher")
    assert (student.segments, teacher.segments) == (True, False)


WRONG = [
    ({"teachers": []}, "Distillation needs teachers"),
    ({"weight": 1.5}, "`weight` must be above 0, and at most 1"),
    ({"weight": 0}, "`weight` must be above 0"),
    ({"temperature": 0}, "`temperature` must be above 0"),
    ({"kind": "letter"}, "kind"),
    ({"wight": 1}, "Did you mean 'weight'"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_wrong_settings(changes, message):
    how = {"teachers": ["runs/a"]} | changes
    settings = {"preset": "g2p_small", "data": {"train": ["x"]}, "distillation": how}
    refused(message, RunSettings.resolve, settings)


@pytest.mark.parametrize(
    ("task", "how", "message"),
    [
        ("forecast", {}, "The task 'forecast' has no distillation"),
        ("classification", {"kind": "sequence"}, "has no sequences"),
        ("regression", {"temperature": 2.0}, "has no probabilities"),
    ],
)
def test_what_a_task_does_not_have(task, how, message, tmp_path):
    data = {"train": write_data(task, tmp_path / "train", 9, 1)}
    refused(message, train, tmp_path / "run", taught(base(task, data), "runs/a", **how))


@pytest.mark.slow
def test_fit_with_a_teacher_from_python(labels, tmp_path):
    folder, data = labels
    teacher = Task.load(folder / "teacher")
    options = {"columns": None, "data": {"hold_out": 40}, "label_smoothing": 0.0}
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
    student = Task.from_preset(
        "encoder_tiny", data["train"], "classification", teacher=teacher, model=sizes
    )
    assert student.tokenizer.digest == teacher.tokenizer.digest
    out = tmp_path / "run"
    student.fit(data["train"], out=out, teacher=teacher, epochs=1, **options)
    recorded = yaml.safe_load((out / "run.yaml").read_text())["distillation"]
    assert recorded["teachers"] == [str(out / "teachers" / "1")]
    assert recorded["checksums"] == [checksum(teacher)]
    refused(
        "The teachers must be those that the run began with",
        student.fit,
        data["train"],
        out=out,
        teacher=student,
        epochs=2,
        resume=True,
    )
    student.fit(data["train"], out=out, teacher=teacher, epochs=2, resume=True)
    refused(
        "`teacher` must be a task, the folder of a run or task.*int",
        student.fit,
        data["train"],
        teacher=3,
    )
