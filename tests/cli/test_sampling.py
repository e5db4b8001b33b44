"""`predict --sample` and `--prefix`, on a task folder and on exports."""

import io
import re
import types

import pytest

from keras_attn.tasks import Task, open_task

pytestmark = pytest.mark.tensorflow

TEXTS = ["abc", "fedcba", "g"]


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    from tests.tasks.test_causal_lm import make_task

    folder = tmp_path_factory.mktemp("lm") / "task"
    make_task().save(folder)
    return folder


def lines(output):
    return [line.split("\t") for line in output.splitlines()]


@pytest.mark.slow
def test_draws_what_the_task_draws(keras_attn, task_folder):
    options = ["--sample", "--samples", "3", "--top-k", "5", "--temperature", "1.2", "--seed", "7"]
    options += ["--top-p", "0.9", "--repetition-penalty", "1.1"]
    output = keras_attn.output("predict", task_folder, *options, "--scores", *TEXTS)
    settings = {"top_k": 5, "temperature": 1.2, "top_p": 0.9, "repetition_penalty": 1.1}
    expected = Task.load(task_folder).sample(TEXTS, 3, 7, **settings)
    assert [line[:2] for line in lines(output)] == [
        [str(number), row.text] for number, rows in enumerate(expected, 1) for row in rows
    ]
    assert float(lines(output)[0][3]) == pytest.approx(expected[0][0].log_probability, abs=1e-3)
    assert keras_attn("predict", task_folder, *options, "--scores", *TEXTS)[1] == output
    options[options.index("--seed") + 1] = "8"
    assert keras_attn("predict", task_folder, *options, "--scores", *TEXTS)[1] != output


def test_a_line_draws_by_its_number_however_it_is_read(keras_attn, task_folder, monkeypatch):
    options = ["--sample", "--temperature", "2"]
    _, expected, _ = keras_attn("predict", task_folder, *options, *["abc"] * 5)
    assert len(set(expected.splitlines())) > 2
    monkeypatch.setattr("keras_attn.cli.predict._CHUNK", 2)
    standard_input = types.SimpleNamespace(buffer=io.BytesIO(b"abc\n" * 5), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", standard_input)
    assert keras_attn("predict", task_folder, *options)[1] == expected


@pytest.mark.slow
def test_a_language_model_and_its_export_draw_the_same(keras_attn, language_model, tmp_path):
    assert keras_attn("export", language_model, tmp_path / "exported")[0] == 0
    options = ["--sample", "--top-k", "5", "--seed", "3", "ab", "", "ab"]
    first = keras_attn("predict", language_model, *options)
    assert first == keras_attn("predict", tmp_path / "exported", *options)
    assert first[0] == 0
    assert len(first[1].splitlines()) == 3


def test_a_prefix(keras_attn, task_folder):
    output = keras_attn.output("predict", task_folder, *TEXTS, "--prefix", "bad", "--n-best", "2")
    assert len(lines(output)) == 6
    assert all(line[1].startswith("bad") for line in lines(output))
    expected = open_task(task_folder).predict_n_best(TEXTS, 2, prefixes=["bad"] * 3)
    assert [line[1] for line in lines(output)] == [row.text for rows in expected for row in rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--temperature", "0.5"], "--temperature needs --sample. Received: 0.5"),
        (["--samples", "2"], "--samples needs --sample. Received: 2"),
        (["--seed", "0"], "--seed needs --sample. Received: 0"),
        (["--sample", "--beams", "3"], "--beams cannot be used with --sample. Received: 3"),
        (["--sample", "--n-best", "2"], "--n-best cannot be used with --sample"),
        (["--sample", "--prefix", "a"], "--prefix cannot be used with --sample"),
        (["--sample", "--temperature", "0"], "use greedy search instead of a temperature of 0"),
        (["--sample", "--top-p", "1.5"], "Received: top_p=1.5."),
        (["--sample", "--seed", "-3"], "Received: seed=-3."),
        (["--sample", "--samples", "0"], "Received: samples=0."),
        (["--prefix", "xyz"], "A prefix must consist of tokens"),
    ],
)
def test_mistakes_are_told_in_one_line(keras_attn, task_folder, options, message):
    assert message in keras_attn.refusal("predict", task_folder, "abc", *options)


@pytest.mark.slow
def test_an_export_of_another_task_does_not_draw(keras_attn, exported):
    error = keras_attn.refusal("predict", exported, "abc", "--sample")
    assert "Only exported language models can sample" in error
    error = keras_attn.refusal("predict", exported, "abc", "--prefix", "a")
    assert "An export does not support prefixes." in error


def test_help_names_every_setting(keras_attn):
    output = keras_attn.output("predict", "--help")
    named = set(re.findall(r"--[\w-]+", output))
    assert {"--sample", "--samples", "--seed", "--temperature", "--top-k", "--top-p"} <= named
