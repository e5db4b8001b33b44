"""The same labeled texts in every form give the same weights."""

import csv
import json
import random

import numpy as np
import pytest
import tensorflow as tf

from keras_attn.tasks import ClassificationTask, Task
from keras_attn.training.run import train

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]
ROWS = 2_000
WORDS = [
    "good",
    "bad",
    "film,",
    '"quoted"',
    "it's",
    "naïve",
    "100%",
    "a;b",
    "#1",
    "Größe",
    "日本",
    "-",
]
COLUMNS = {"text": "review", "label": "stars"}
SETTINGS = {"model": {"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 16, "num_heads": 2}}
TEN_UPDATES = {"steps": 10, "batch_tokens": 512, "warmup_steps": 2}


def table():
    draw = random.Random(7)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(ROWS)]
    return [(text, draw.choice(["1", "2", "5"])) for text in texts]


def as_tsv(rows, folder):
    lines = ["review\tstars", *("\t".join(row) for row in rows)]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [folder / "rows.tsv"]


def as_csv(rows, folder):
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("review", "stars"), *rows])
    return [folder / "rows.csv"]


def as_json_lines(rows, folder):
    lines = [json.dumps({"id": 1, "review": text, "stars": label}) for text, label in rows]
    (folder / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return [folder / "rows.jsonl"]


def as_parquet(rows, folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts, labels = zip(*rows, strict=True)
    parquet.write_table(pyarrow.table({"stars": labels, "review": texts}), folder / "rows.parquet")
    return [folder / "rows.parquet"]


def as_aligned_files(rows, folder):
    for name, column in (("texts", 0), ("labels", 1)):
        lines = "\n".join(row[column] for row in rows)
        (folder / name).write_text(lines + "\n", encoding="utf-8")
    return [folder / "texts", folder / "labels"]


FILES = (as_tsv, as_csv, as_json_lines, as_parquet, as_aligned_files)


def as_pairs(rows, _):
    return rows


def as_pandas(rows, _):
    return pytest.importorskip("pandas").DataFrame(rows, columns=["review", "stars"])


def as_datasets(rows, _):
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_list([{"review": text, "stars": label} for text, label in rows])


def as_tf_data(rows, _):
    texts, labels = zip(*rows, strict=True)
    return tf.data.Dataset.from_tensor_slices({"review": list(texts), "stars": list(labels)})


OBJECTS = (as_pairs, as_pandas, as_datasets, as_tf_data)


def weights(task):
    return np.concatenate([np.ravel(one) for one in task.backbone.get_weights()])


def columns_of(form):
    return None if form in (as_aligned_files, as_pairs) else COLUMNS


@pytest.fixture(scope="module")
def by_command(tmp_path_factory):
    """The weights after ten updates, trained on a TSV file."""
    return trained(as_tsv, tmp_path_factory.mktemp("tsv"))


def trained(form, folder):
    data = {"train": list(map(str, form(table(), folder)))}
    data |= {"columns": columns_of(form)} if columns_of(form) else {}
    layer = {"preset": "encoder_tiny", "data": data, "training": TEN_UPDATES}
    train(folder / "run", SETTINGS | layer, reports=False)
    return weights(Task.load(folder / "run" / "task"))


def fitted(form, folder):
    rows, columns = form(table(), folder), columns_of(form)
    task = ClassificationTask.from_preset("encoder_tiny", rows, columns=columns, **SETTINGS)
    task.fit(rows, out=folder / "run", columns=columns, **TEN_UPDATES)
    return weights(task)


@pytest.mark.parametrize("form", FILES[1:])
def test_a_command_trains_the_same_weights_on_every_form(form, tmp_path, by_command):
    np.testing.assert_array_equal(trained(form, tmp_path), by_command)


@pytest.fixture(scope="module")
def by_fit(tmp_path_factory):
    """The weights after ten updates, fitted to a TSV file."""
    return fitted(as_tsv, tmp_path_factory.mktemp("fit"))


@pytest.mark.parametrize("form", [*FILES[1:], *OBJECTS])
def test_fit_trains_the_same_weights_on_every_form(form, tmp_path, by_fit):
    np.testing.assert_array_equal(fitted(form, tmp_path), by_fit)


def test_other_rows_give_other_weights(tmp_path, by_command):
    rows = table()
    rows[5] = (rows[5][0], "2" if rows[5][1] == "1" else "1")
    data = {"train": list(map(str, as_csv(rows, tmp_path))), "columns": COLUMNS}
    layer = {"preset": "encoder_tiny", "data": data, "training": TEN_UPDATES}
    train(tmp_path / "run", SETTINGS | layer, reports=False)
    assert not np.array_equal(weights(Task.load(tmp_path / "run" / "task")), by_command)
