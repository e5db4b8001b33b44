"""Students of embeddings: targets by hand, projections, and runs without labels."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import Pairs, PartnerExamples
from keras_attn.models import Bert
from keras_attn.tasks import EmbeddingTask, Task
from keras_attn.tokenizers import CharacterTokenizer
from keras_attn.training.task_runs.taught_vectors import (
    VectorTargets,
    joint_vectors,
    projection,
    texts_by_number,
)
from tests.layers.judges import spread_weights
from tests.refusals import refused
from tests.training.task_runs.made import base, partners, write_data
from tests.training.task_runs.test_distilled_runs import taught, train

pytestmark = pytest.mark.tensorflow

LETTERS = CharacterTokenizer("abcdefghij")
PAIRS = Pairs(["abc", "ab", "abc"], ["dd", "abc", "e"])


def made(seed, hidden_dim=6, **options):
    sizes = {"num_layers": 1, "hidden_dim": hidden_dim, "num_heads": 2, "intermediate_dim": 7}
    model = spread_weights(Bert(LETTERS.vocabulary_size, **sizes), seed)
    return EmbeddingTask(model, LETTERS, max_length=9, **options)


def test_texts_have_the_numbers_of_the_examples():
    examples = PartnerExamples.from_pairs(PAIRS, LETTERS, 9)
    texts = texts_by_number(PAIRS)
    found = [[texts[number - 1] for number in row] for row in examples.numbers]
    assert found == [["abc", "dd"], ["ab", "abc"], ["abc", "e"]]
    assert sorted(texts) == ["ab", "abc", "dd", "e"]


def test_dot_products_of_several_teachers_are_averaged():
    teachers, texts = [made(1), made(2, 8)], ["abc", "dd", "ea", "jih"]
    joint = joint_vectors(teachers, texts)
    assert joint.shape == (4, 14)
    expected = np.mean([v @ v.T for v in (one.predict(texts) for one in teachers)], axis=0)
    np.testing.assert_allclose(joint @ joint.T, expected, atol=1e-6)


def test_projections_keep_dot_products():
    generator = np.random.default_rng(1)
    hidden = generator.normal(size=(50, 3)) @ generator.normal(size=(3, 11))
    vectors = hidden.astype("float32")  # of rank 3
    for features in (3, 5, 11, 13):
        kept = vectors @ projection(vectors, features)
        assert kept.shape == (50, features)
        np.testing.assert_allclose(kept @ kept.T, vectors @ vectors.T, atol=1e-3)
    # Fewer features lose as little as the singular values say.
    kept = vectors @ projection(vectors, 2)
    lost = np.linalg.norm(vectors @ vectors.T - kept @ kept.T)
    values = np.linalg.svd(vectors.astype("float64"), compute_uv=False)
    assert lost == pytest.approx(values[2] ** 2, rel=1e-3)


@pytest.mark.parametrize("kind", ["cosine", "mse"])
@pytest.mark.parametrize("normalize", [True, False])
def test_losses_by_hand(kind, normalize):
    task = made(1, normalize=normalize)
    table = np.random.default_rng(2).normal(size=(4, 6)).astype("float32")
    targets = VectorTargets.of(task, table, kind)
    inputs, labels = PartnerExamples.from_pairs(PAIRS, LETTERS, 9).assemble([0, 2], (3, 5, 5))
    found = targets.targets(inputs, tf.constant(labels)).numpy()
    texts = texts_by_number(PAIRS)
    order = ["abc", "abc", None, "dd", "e", None]
    expected = [table[texts.index(text)] if text else np.zeros(6) for text in order]
    np.testing.assert_array_equal(found, np.array(expected, "float32"))
    outputs = task.backbone({"token_ids": inputs["token_ids"]})
    loss = float(targets.loss(tf.constant(labels), outputs, tf.constant(found)))
    by_hand = 0.0
    for text in filter(None, order):
        ours, theirs = task.predict([text])[0], table[texts.index(text)]
        cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
        by_hand += (1 - cosine) / 2 if kind == "cosine" else np.mean((ours - theirs) ** 2) / 2
    assert loss == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.slow
def test_student_without_labels_finds_the_neighbors_of_its_teacher(tmp_path, capsys):
    """A smaller student with a tokenizer of its own learns the vectors of texts alone."""
    data = {"train": write_data("embedding", tmp_path / "train", 150, 1), "hold_out": 20}
    train(tmp_path / "teacher", base("embedding", data, epochs=2))
    teacher = Task.load(tmp_path / "teacher")
    words = sorted({line.split("\t")[0] for line in partners(400, 3)})
    (tmp_path / "texts.txt").write_text("".join(f"{word}\n" for word in words))
    unlabeled = {"train": str(tmp_path / "texts.txt"), "hold_out": 30, "unlabeled": True}
    settings = taught(base("embedding", unlabeled, epochs=15), tmp_path / "teacher")
    settings["tokenizers"] = {"text": {"kind": "byte_level_bpe", "vocabulary_size": 270}}
    settings["model"] = settings["model"] | {"hidden_dim": 12}
    train(tmp_path / "student", settings)
    student = Task.load(tmp_path / "student")
    assert (student.features, teacher.features) == (12, 16)
    assert student.tokenizer.digest != teacher.tokenizer.digest
    kept = sorted(path.name for path in (tmp_path / "student" / "answers").iterdir())
    assert kept == ["train.npy", "validation.npy"]
    losses = [
        float(line.split("val_loss ")[1].split()[0])
        for line in capsys.readouterr().out.splitlines()
        if "val_loss" in line
    ]
    assert losses[-1] < 0.7 * losses[2], "the loss of validations is that by the teacher"
    test = sorted({line.split("\t")[0] for line in partners(100, 9)})
    cosines = [one @ one.T for one in (task.predict(test) for task in (student, teacher))]
    off = ~np.eye(len(test), dtype=bool)
    assert np.corrcoef(cosines[0][off], cosines[1][off])[0, 1] > 0.8


def test_what_embeddings_do_not_have(tmp_path):
    data = {"train": write_data("embedding", tmp_path / "train", 9, 1)}
    settings = taught(base("embedding", data), "runs/a", temperature=2.0)
    refused("has no probabilities", train, tmp_path / "run", settings)
    settings = taught(base("embedding", data), "runs/a", vectors="dot")
    refused("`vectors` must be one of", train, tmp_path / "run", settings)
