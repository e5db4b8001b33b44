"""--set decoding.NAME=VALUE of `predict`, `evaluate` and `export`."""

import pytest

from keras_attn.tasks import Task

pytestmark = pytest.mark.tensorflow

TEXTS = ["abc", "fedcba", "g"]
CHANGES = ["--set", "decoding.max_length=5", "--set", 'decoding.banned_words=[a, b, " "]']
CHANGES += ["--set", "decoding.min_length=3"]


def expected(task_folder):
    task = Task.load(task_folder).with_decoding(
        max_length=5, min_length=3, banned_words=["a", "b", " "]
    )
    return task.predict(TEXTS)


@pytest.mark.slow
def test_predict_generates_as_told(keras_attn, task_folder):
    output = keras_attn.output("predict", task_folder, *CHANGES, *TEXTS)
    assert output.splitlines() == expected(task_folder)
    assert not set(output) & {"a", "b"}
    assert output != keras_attn("predict", task_folder, *TEXTS)[1]


@pytest.mark.slow
def test_evaluate_and_export_generate_as_told(keras_attn, task_folder, tmp_path):
    pairs = zip(TEXTS, expected(task_folder), strict=True)
    (tmp_path / "test.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in pairs))
    options = ["--data", tmp_path / "test.tsv", "--metrics", "exact_match"]
    output = keras_attn.output("evaluate", task_folder, *options, *CHANGES)
    assert "exact_match        100.00" in output
    keras_attn.output("export", task_folder, tmp_path / "exported", *CHANGES)
    output = keras_attn.output("predict", tmp_path / "exported", *TEXTS)
    assert output.splitlines() == expected(task_folder)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("no_repeat_ngram=2", "--set takes decoding.NAME=VALUE, such as decoding.min_length=5."),
        ("training.seed=2", "--set takes decoding.NAME=VALUE"),
        ("decoding=2", "--set takes decoding.NAME=VALUE"),
        ("decoding.beam=2", "Did you mean 'beams'? Received: setting='beam'."),
        ("decoding.stopping=soon", "`stopping` must be one of 'exact', 'early', 'heuristic'."),
        ("decoding.coverage_penalty=1", "`coverage_penalty` needs a recurrent model"),
        ("decoding.min_length", "--set takes NAME=VALUE"),
    ],
)
def test_mistakes_take_one_line(assignment, message, keras_attn, task_folder):
    assert message in keras_attn.refusal("predict", task_folder, "--set", assignment, "abc")


def test_the_old_name_of_beams_works_and_names_the_new_one(keras_attn, task_folder):
    expected = keras_attn("predict", task_folder, "--beams", "2", "abc")
    status, output, error = keras_attn("predict", task_folder, "--beam", "2", "abc")
    assert (status, output) == expected[:2]
    assert error == (
        "keras-attn: --beam is now --beams; the old name will be removed in the next version.\n"
    )


@pytest.mark.slow
def test_an_export_is_as_it_is(keras_attn, exported):
    error = keras_attn.refusal("predict", exported, *CHANGES, "abc")
    assert "the decoding of an exported model is fixed" in error


def test_names_of_files_are_no_texts(keras_attn, task_folder, tmp_path):
    (tmp_path / "notes.xyz").write_text("abc\n")
    for name in (str(tmp_path / "notes.xyz"), "missing.csv", "abc.jsonl.gz"):
        error = keras_attn.refusal("predict", task_folder, "abc", name)
        assert "TEXT is the name of a file. To read a table, name its column: --columns" in error
    assert keras_attn("predict", task_folder, "a.b c.csv", "a.b")[0] == 0
