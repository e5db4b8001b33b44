"""Commands on a task folder and on its export: predict, evaluate, export, verify."""

import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys

import pytest

TEXTS = ["abc", "fed cab", "g"]


class Input:
    """Standard input made of bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)

    def isatty(self):
        return False


@pytest.fixture(params=["task_folder", pytest.param("exported", marks=pytest.mark.slow)])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_the_texts_of_a_column_are_predicted(keras_attn, task_folder, tmp_path):
    table = tmp_path / "words.csv"
    table.write_text("id;word\n" + "".join(f'{n};"{text}"\n' for n, text in enumerate(TEXTS)))
    expected = keras_attn("predict", task_folder, *TEXTS)
    assert keras_attn("predict", task_folder, table, "--columns", "source=word") == expected
    bad = tmp_path / "bad.csv"
    bad.write_text("id;word\n2\n1;cab\n3;bad\n4;dad\n")
    for arguments, message in (
        (
            [bad, "--columns", "source=word"],
            "line 2: expected 2 fields as in the first",
        ),
        ([bad, "--columns", "source=word"], "since each has its answer: mend it"),
        ([table, "--columns", "text=word"], "`columns` must be one of 'source'"),
        ([table, "--columns", "source=wrod"], "has no column 'wrod'"),
        ([table, "--encoding", "cp1252"], "--encoding is for tables: add --columns"),
        (["--columns", "source=word"], "With --columns, TEXT is the name of a table"),
    ):
        assert message in keras_attn.refusal("predict", task_folder, *arguments)


def test_a_task_and_its_export_predict_the_same(keras_attn, task_folder, exported):
    first = keras_attn("predict", task_folder, "--scores", *TEXTS)
    second = keras_attn("predict", exported, "--scores", *TEXTS)
    assert first == second
    assert first[0] == 0
    assert first[1].count("\n") == len(TEXTS)
    for line in first[1].splitlines():
        _, score, log_probability = line.split("\t")
        assert 0 > float(score) >= float(log_probability)


def test_n_best_is_numbered_and_sorted(keras_attn, model):
    output = keras_attn.output("predict", model, *TEXTS, "--n-best", "2", "--scores")
    rows = [line.split("\t") for line in output.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "2", "3", "3"]
    assert all(float(a[2]) >= float(b[2]) for a, b in zip(rows[::2], rows[1::2], strict=True))


def test_texts_may_follow_options(keras_attn, task_folder):
    before = keras_attn("predict", task_folder, "abc", "g", "--beams", "2")
    after = keras_attn("predict", task_folder, "--beams", "2", "abc", "g")
    assert before == after
    assert before[0] == 0


def test_standard_input_gives_a_line_for_each_line(keras_attn, monkeypatch, model):
    expected = keras_attn("predict", model, "abc", "", "fed cab")
    monkeypatch.setattr(sys, "stdin", Input(b"abc\r\n\nfed cab"))
    assert keras_attn("predict", model) == expected
    assert expected[0] == 0
    assert expected[1].count("\n") == 3
    assert "blank: 1 of 3 texts, which have an answer that says nothing" in expected[2]


def test_text_that_is_no_utf8_is_told_by_line(keras_attn, monkeypatch, model):
    _, expected, _ = keras_attn("predict", model, "abc")
    monkeypatch.setattr(sys, "stdin", Input(b"abc\nbad \xff\n"))
    status, output, error = keras_attn("predict", model)
    # The lines before it are not lost.
    assert (status, output) == (2, expected)
    line = "keras-attn: error: standard input, line 2, byte 5: the text must be UTF-8. `iconv -f"
    assert error.startswith(line)


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(task_folder):
    command = f"yes abc | head -5000 | '{sys.executable}' -m keras_attn predict '{task_folder}'"
    script = f"{command} | head -1; echo ${{PIPESTATUS[2]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "141"
    assert done.stderr == ""


def test_a_text_that_is_too_long(keras_attn, model):
    error = keras_attn.refusal("predict", model, "abc", "ab" * 31)
    assert "must have at most 22 tokens" in error
    assert "62" in error or "63" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "nowhere"], "nowhere does not exist"),
        (["predict", "."], ". is neither a run nor a task folder, and holds no export."),
        (["evaluate", "nowhere", "--data", "a.tsv"], "nowhere does not exist"),
        (["export", "nowhere", "out"], "nowhere does not exist"),
        (
            ["export", "nowhere", "out", "--quantize-only", "x"],
            "--quantize-only) needs `weights`",
        ),
        (
            ["verify", "nowhere"],
            "The folder of the SavedModel does not exist. Received: folder='nowhere'.",
        ),
        (["average", "nowhere", "--last", "2"], "nowhere is not a run: it contains no"),
        (["average", "nowhere", "--last", "0"], "`last` must be a positive integer"),
        (["benchmark", "train", "--workload", "huge"], "Received: workload='huge'."),
        (
            ["benchmark", "decode", "--batches", "0"],
            "`batches` must be a positive integer. Received: batches=0.",
        ),
        (["presets", "--vocabulary", "0"], "Received: vocabulary=0."),
    ],
)
def test_mistakes_take_one_line(keras_attn, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in keras_attn.refusal(*arguments)


def test_where_results_go_is_looked_at_first(keras_attn, tmp_path):
    for missing in (tmp_path / "nowhere" / "results.json", tmp_path):
        error = keras_attn.refusal("evaluate", "no-model", "--data", "no-data", "--json", missing)
        assert "must be in a folder that exists and can be written to" in error
        assert str(missing) in error


def test_evaluate_measures_against_all_references(keras_attn, model, tmp_path):
    """Predictions themselves, among other references, leave no error."""
    _, output, _ = keras_attn("predict", model, *TEXTS)
    predictions = output.splitlines()
    data, results = tmp_path / "data.tsv", tmp_path / "results.json"
    rows = [f"{TEXTS[0]}\twrong", *map("\t".join, zip(TEXTS, predictions, strict=True))]
    data.write_text("\n".join(row for row in rows if not row.endswith("\t")) + "\n")
    output = keras_attn.output(
        "evaluate", model, "--data", data, "--metrics", "wer", "--json", results
    )
    kept = sum(1 for text in predictions if text)
    expected = {"items": kept, "wer": 0.0} if predictions[0] else {"items": kept + 1}
    assert expected.items() <= json.loads(results.read_text()).items()
    assert output.splitlines()[0].split() == [
        "sources",
        str(json.loads(results.read_text())["items"]),
    ]


def test_evaluate_writes_wrong_answers(keras_attn, task_folder, tmp_path):
    prediction = keras_attn.output("predict", task_folder, "abc").splitlines()[0]
    data, errors = tmp_path / "data.tsv", tmp_path / "errors.csv"
    data.write_text("abc\tnothing like it\ng\tnever so\n")
    keras_attn.output("evaluate", task_folder, "--data", data, "--errors", errors)
    rows = list(csv.DictReader(errors.read_text().splitlines()))
    assert list(rows[0]) == ["error", "input", "correct", "predicted"]
    wrong = {row["input"]: row for row in rows}
    assert {name: row["correct"] for name, row in wrong.items()} == {
        "abc": "nothing like it",
        "g": "never so",
    }
    assert wrong["abc"]["predicted"] == prediction
    found = [float(row["error"]) for row in rows]
    assert found == sorted(found, reverse=True)


def test_evaluate_adds_perplexity(keras_attn, task_folder, tmp_path):
    """Of an untrained model it lies near the size of the vocabulary, 12."""
    data = tmp_path / "data.tsv"
    data.write_text("abc\tfed\ng\tcab\n")
    output = keras_attn.output("evaluate", task_folder, "--data", data, "--perplexity")
    found = dict(line.split() for line in output.splitlines())
    signatures = ["bleu_signature", "chrf_signature"]
    assert list(found) == ["sources", "bleu", "chrf", "wer", *signatures, "perplexity"]
    assert "|tok:13a|" in found["bleu_signature"]
    assert 3 < float(found["perplexity"]) < 48
    assert math.isfinite(float(found["chrf"]))


@pytest.fixture
def shipped(task_folder, exported, tmp_path):
    """A folder as in `saved_models/`: two versions, the task, a card."""
    folder = tmp_path / "saved_models" / "letters"
    for version in ("1", "2"):
        shutil.copytree(exported / "1", folder / version)
    shutil.copytree(task_folder, folder / "task")
    (folder / "README.md").write_text("# letters\n")
    return folder


@pytest.mark.slow
def test_a_model_folder_predicts_and_is_verified_by_its_newest_version(
    keras_attn, exported, shipped
):
    answer = keras_attn("predict", exported, *TEXTS, "--scores")
    assert answer[0] == 0
    (shipped / "1" / "saved_model.pb").write_bytes(b"damaged")
    assert keras_attn("predict", shipped, *TEXTS, "--scores") == answer
    assert keras_attn.output("verify", shipped).startswith(f"{shipped / '2'}: verified\n")
    # The beams of an export are fixed, those of the task are not.
    error = keras_attn.refusal("predict", shipped, "abc", "--beams", "2")
    assert "beams of an exported model cannot be changed. Received: beams=2." in error
    assert keras_attn("predict", shipped / "task", "abc", "--beams", "2")[0] == 0


@pytest.mark.slow
def test_a_model_folder_is_evaluated_as_its_run_was(keras_attn, shipped, tmp_path):
    data = tmp_path / "data.tsv"
    data.write_text("abc\tfed\ng\tcab\n")
    found = []
    for settings in (None, "metrics: [per]\n"):
        if settings:
            (shipped / "run.yaml").write_text(settings)
        for model in (shipped, shipped / "2", shipped / "task"):
            output = keras_attn.output("evaluate", model, "--data", data, "--perplexity")
            found.append([line.split() for line in output.splitlines()])
    names = [[name for name, _ in lines] for lines in found]
    signatures = ["bleu_signature", "chrf_signature"]
    assert names[:3] == [["sources", "bleu", "chrf", "wer", *signatures, "perplexity"]] * 3
    assert names[3:] == [["sources", "per", "perplexity"]] * 3
    assert all(lines[-1] == found[0][-1] for lines in found)


@pytest.mark.slow
def test_a_model_folder_is_trained_further_and_exported_anew(keras_attn, shipped, tmp_path):
    from keras_attn.tasks import Task

    data, run = tmp_path / "data.tsv", tmp_path / "run"
    data.write_text("abc\tfed\ng\tcab\n")
    keras_attn.output(
        "train", "--init", shipped, "--data", data, "--valid", data, "--out", run, "--steps", "1",
        "--set", "training.deterministic=false", "--set", "training.learning_rate=1e-9",
    )  # fmt: skip
    weights = [Task.load(path / "task").backbone.weights for path in (shipped, run)]
    for before, after in zip(*weights, strict=True):
        assert abs(after.numpy() - before.numpy()).max() < 1e-5
    assert keras_attn.output("export", shipped, shipped) == f"{shipped / '3'}\n"
    assert keras_attn.output("export", shipped / "3", tmp_path / "again").endswith("1\n")
    shutil.rmtree(shipped / "3" / "assets.extra" / "task")  # as earlier versions exported
    for command in (["train", "--data", data, "--out", tmp_path / "x", "--init"], ["export"]):
        extra = [tmp_path / "new"] if command == ["export"] else []
        error = keras_attn.refusal(*command, shipped / "3", *extra)
        assert f"{shipped / '3'} contains only a SavedModel, exported without its task: " in error


@pytest.mark.slow
def test_export_in_half_precision(keras_attn, task_folder, tmp_path):
    status, output, error = keras_attn(
        "export", task_folder, tmp_path / "half", "--quantize", "float16"
    )
    # The path alone, for scripts; what was measured beside it.
    assert (status, output) == (0, f"{tmp_path / 'half' / '1'}\n"), error
    head, *changes = error.splitlines()
    assert re.fullmatch(r"\d+ weights in float16: \d\S* -> \d\S* MiB", head)
    pattern = r"  (\w+): 0 of \d outputs are different, numbers differ by at most (\S+)"
    found = dict(re.fullmatch(pattern, line).groups() for line in changes)
    assert {"serving_default", "n_best", "score", "token_ids"} <= set(found)
    assert 0 < float(found["score"]) < 0.001
    assert keras_attn("verify", tmp_path / "half")[0] == 0
    answers = [keras_attn("predict", model, "g") for model in (task_folder, tmp_path / "half")]
    assert answers[0] == answers[1]
    error = keras_attn.refusal("export", task_folder, tmp_path / "new", "--quantize", "float15")
    assert "Did you mean 'float16'" in error
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_export_then_verify(keras_attn, task_folder, tmp_path):
    folder, examples = tmp_path / "exported", tmp_path / "examples.txt"
    examples.write_text("fed\nabc gag\n")
    options = ["--beams", "2", "--examples", examples, "--serving-config", tmp_path / "serving"]
    status, output, error = keras_attn("export", task_folder, folder, *options)
    assert (status, output.strip()) == (0, str(folder / "1")), error
    assert f"TensorFlow Serving's configuration: {tmp_path / 'serving'}" in error
    assert 'name: "exported"' in (tmp_path / "serving" / "models.config").read_text()
    golden = (folder / "1" / "assets.extra" / "golden.json").read_text()
    assert "abc gag" in golden or "YWJjIGdhZw==" in golden
    assert keras_attn.output("verify", folder).startswith(f"{folder / '1'}: verified\n")
    (folder / "1" / "assets.extra" / "golden.json").write_text("[")
    status, _, error = keras_attn("verify", folder)
    assert status in (1, 2)
    error = keras_attn.refusal("export", task_folder, folder, "--model-version", "1")
    assert "version folder exists already" in error
    error = keras_attn.refusal("export", task_folder, folder, "--n-best", "9")
    assert "n_best=9, beams=3." in error
