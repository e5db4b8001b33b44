"""`keras-attn data` counts what files hold, and what a run would make of it."""

import json
import os
import re
import threading

import pytest

from keras_attn.data.overview import lengths_summary

pytestmark = pytest.mark.tensorflow

REVIEWS = """id,Review,stars
1,"Good film, really",5
2,bad,1
3,"so so",3
4,bad,1
5
"""


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(REVIEWS)
    return path


def test_all_columns(keras_attn, reviews, tmp_path):
    written = tmp_path / "data.json"
    output = keras_attn.output("data", reviews, "--json", written)
    found = json.loads(written.read_text())["parts"]["train"]
    assert (found["rows"], found["malformed"], found["double"]) == (4, 1, 0)
    assert list(found["columns"]) == ["id", "Review", "stars"]
    column = found["columns"]["Review"]
    assert (column["different"], column["empty"], column["example"]) == (3, 0, "Good film, really")
    lengths = {name: column["words"][name] for name in ("shortest", "median", "longest")}
    assert lengths == {"shortest": 1, "median": 1, "longest": 3}
    assert sum(count for *_, count in column["words"]["histogram"]) == 4
    assert found["columns"]["stars"]["values"] == {"1": 2, "5": 1, "3": 1}
    assert "4 rows, 1 malformed" in output
    assert "'1' 2, '5' 1, '3' 1" in output


def test_as_a_preset_reads_it(keras_attn, reviews, tmp_path):
    test = tmp_path / "test.tsv"
    test.write_text("bad\t1\nfine\t5\n")
    written = tmp_path / "data.json"
    columns = ["--columns", "text=Review", "label=stars"]
    arguments = ["--preset", "encoder_tiny", "--set", "data.max_source_length=7", "--json", written]
    arguments += ["--set", "tokenizers.text.kind=characters"]
    output = keras_attn.output("data", reviews, *columns, *arguments)
    found = json.loads(written.read_text())
    assert list(found["parts"]["train"]["columns"]) == ["text", "label"]
    assert found["parts"]["train"]["double"] == 1
    run = found["run"]
    assert run["tokens"]["text"]["longest"] == len("Good film, really") + 1
    assert (run["limits"], run["truncated"], run["left_out"]) == ({"text": 7}, 1, 0)
    assert "1 examples are longer and would be cut" in output
    output = keras_attn.output("data", reviews, *columns)  # without a task, no others are shown
    assert "  text: 3 different" in output
    assert "  label: 3 different" in output
    refusal = keras_attn.refusal("data", reviews, "--columns", "text=Revue")
    assert "has no column 'Revue'" in refusal
    refusal = keras_attn.refusal("data", reviews, "--columns", "text=Review", "text=id")
    assert "argument --columns: text is given twice" in refusal
    output = keras_attn.output("data", test, "--test", test, "--task", "classification")
    assert "2 of 2 rows of test have a text of train." in output


@pytest.mark.parametrize(
    ("lengths", "bins"),
    [
        ([3], [(3, 1)]),
        ([1, 2, 4], [(1, 1), (2, 1), (3, 1)]),
        (range(5, 17), [(5, 2), (7, 2), (9, 2), (11, 2), (13, 2), (15, 2)]),
        (
            [*range(100), 100, 900],
            [(0, 13), (13, 13), (26, 13), (39, 13), (52, 13), (65, 13), (78, 13), (91, 11)],
        ),
    ],
)
def test_bins_of_a_histogram_are_equally_wide(lengths, bins):
    histogram = lengths_summary(list(lengths))["histogram"]
    assert [(low, count) for low, _, count in histogram] == bins


def test_generated_data(keras_attn):
    sizes = "length=16,pairs=2,train=9,validation=3,test=2"
    output = keras_attn.output("data", f"recall:{sizes}")
    assert "train: recall/train\n  9 rows\n  text: 9 different" in output
    assert "0 of 2 rows of test have a text of train." in output
    assert "lacks" not in output  # tags are no labels of texts
    output = keras_attn.output("data", "listops:train=9,validation=3,test=2", "--task", "masked_lm")
    assert "train: listops/train\n  9 rows\n  text: 9 different" in output
    output = keras_attn.output("data", "pathfinder:train=3,validation=1,test=1")
    assert output.count("Generating") == 1
    assert "its --preset or --init" in keras_attn.refusal("data", f"recall:{sizes}", "--set", "x=1")


TAGGING = ["--task", "token_classification"]
LABELS = ["--task", "classification"]
SEVERAL = ["--task", "multi_label_classification", "--label-separator", ";"]
RANK = ["--task", "rank"]
ANSWERS = ["--task", "question_answering"]
QUESTIONS = [
    {"id": number, "question": "Who?", "answers": answers}
    for number, answers in enumerate(
        [[{"text": "Anna", "answer_start": 0}], [], [{"text": "A", "answer_start": 1}]], 1
    )
]
SQUAD = json.dumps({"data": [{"paragraphs": [{"context": "Anna sings.", "qas": QUESTIONS}]}]})
ONE_IN_CP1252 = (
    70_000 * b"some words\tb\n" + "un café où l'été a été très réussi, à côté\tb\n".encode("cp1252")
)


@pytest.mark.parametrize(
    ("name", "content", "arguments", "line"),
    [
        ("a.csv", "text,label\na,1\nb\nc,2\n", [], "a.csv, line 3: expected 2 fields as in the"),
        ("a.conll", "Anna B-PER\nsings O\n\n", [], "1 rows"),
        ("a.conll", "Anna B-PER\nsings O\n\n", TAGGING, "tags: 1 diff"),
        ("a.txt", "one two\n\nthree\n", ["--task", "causal_lm"], "2 rows"),
        ("a.jsonl", '{"a": 1, "b": null}\n', [], "b: 1 different, 1 empty"),
        ("a.tsv", "a\tb\nc\td\n", [], "2: 2 different"),
        ("a.tsv", "source\ttarget\nc\td\n", [], "source: 1 different"),
        ("a.tsv", "a\tb\nc\td\te\nf\tg\n", [], "2 rows, 1 malformed"),
        ("a.tsv", "# a\n# b\na\tb\nc\td\nf\tg\n", [], "3 rows, 2 malformed"),
        ("a.tsv", "a\tb\0\nc\td\n", [], "2: 2 different, 1 with a NUL character, which `train`"),
        ("a.tsv", "a\tb\nc\td\te\nf\tg\n", [], "more than the 5% that --skip-bad-lines leaves out"),
        ("a.csv", "Text,Art\nx,a\ny,b\n", [], "taken for names of columns: 'Text', 'Art'."),
        ("a.csv", "0,x\n4,y\n", [], "1: 2 different"),
        ("a.tsv", "a\tb\na\tb\n", [], "2 rows, 1 double"),
        ("a.csv", "text,label\na,1\ntext,label\nb,1\n", [], "2 rows, 1 malformed"),
        ("a.jsonl", '{"a": 1}\n{"a": 2, "b": 3}\n', [], "b: 2 different, 1 empty"),
        ("a.tsv", "a b\tO O\nc d\tO\n", TAGGING, "line 2, column 5: expected a tag for each of 2"),
        ("a.tsv", "a\tX\nb\tY\n", ["--preset", "g2p_small"], "Warning: every target is one symbol"),
        ("a.tsv", "a\tO\nb\tO\n", TAGGING, "Every text is one word; sentences with a word a line"),
        ("a.tsv", "Satz\tWert\n" + 10 * "x\t1\n", [], "first line is taken for names of columns"),
        ("a.csv", "text,label,label\na,1,2\n", [], "label (column 3): 1 different"),
        ("a.csv", "text,label\na,yes\nb,Yes\n", LABELS, "Labels that look alike: 'yes', 'Yes'."),
        ("a.csv", "text,label\na,1\nb,1.0\n", LABELS, "Labels that look alike: '1', '1.0'."),
        (
            "a.csv",
            "text,label\na,x\nb,x\na,y\na,x\nb,x\n",
            LABELS,
            "1 text occurs more than once, with different labels, such as that of row 1.",
        ),
        ("a.csv", "text,label\na,1\nb,true\n", LABELS, "Labels that look alike: '1', 'true'."),
        ("a.csv", "text,label\na,x\nb,x\u200b\n", LABELS, r"look alike: 'x', 'x\u200b'."),
        ("a.csv", "text,label\na,1\nb,\\N\n", LABELS, "like missing values: '\\\\N'."),
        ("a.csv", "text,label\na,1\nb,1\n", LABELS, "All rows have the same label"),
        ("a.tsv", "x\ta b\ny\tc d\ny\te\nx\tf\nx\tg\n", LABELS, "The label has 5 different"),
        ("a.csv", "text,label\na,1\nb,2\n", LABELS, "The label has 2 different values in 2 rows."),
        ("a.csv", "text,label\na,1;2\n", [*LABELS, "--label-separator", ";"], "such as '1, 2'"),
        ("a.csv", "text,label\na,1;2\nb,2;1\n", SEVERAL, "label: 2 different, such as '1, 2'"),
        ("a.json", SQUAD, ANSWERS, "2 rows, 1 malformed"),
        (
            "a.json",
            SQUAD,
            ANSWERS,
            "question 3: expected the answer at 1 of the context, found 'n'",
        ),
        ("a.json", SQUAD, ANSWERS, "answer: 1 different, 1 empty, such as 'Anna'"),
        ("a.csv", "question,context,answer\nq,a b,a\nq,a a,a\n", ANSWERS, "1 rows, 1 malformed"),
        ("a.tsv", "q\ta\t1\nq\tb\t-1\n", RANK, "1 rows, 1 malformed"),
        ("a.tsv", "q\ta b\t1\n", [*RANK, "--preset", "encoder_tiny"], "    tokens: 5\n"),
        ("a.tsv", ONE_IN_CP1252, [], "The file may be in "),
    ],
)
def test_forms(keras_attn, tmp_path, name, content, arguments, line):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert line in keras_attn.output("data", tmp_path / name, *arguments)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"text,label\n", "there is no example"),
        (b"text,label\na\nb\n", "all 2 lines are malformed. The first one: .*line 2: expected 2"),
        (b"text,label\rgood,1\rbad,0\r", "must end with LF or CRLF, found CR alone"),
        (b"text,label\ngood,1\rbad,0\n", r"a carriage return \(CR\) outside quotes"),
        ("text,label\ncaf\u00e9,1\n".encode("latin-1"), "a character that cannot be decoded"),
    ],
)
def test_a_file_without_a_sound_row_is_refused(keras_attn, tmp_path, content, line):
    (tmp_path / "a.csv").write_bytes(content)
    assert re.search(line, keras_attn.refusal("data", tmp_path / "a.csv"))


def test_a_pipe_is_read_once(keras_attn, tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writing = threading.Thread(target=path.write_text, args=("text,label\na,1\nb,1\n",))
    writing.start()
    assert "2 rows" in keras_attn.output("data", path, *LABELS)
    writing.join()


def test_lines_of_several_files_are_texts_of_a_language_model(keras_attn, tmp_path):
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("one two\nthree\n")
    assert "4 rows" in keras_attn.output("data", *files, "--task", "causal_lm")


def test_two_tables_are_no_aligned_files(keras_attn, tmp_path):
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("one\t1\nthree\t3\n")
    assert "both have tabs. Name tables *.tsv" in keras_attn.refusal("data", *files, *LABELS)


def test_folders_of_images(keras_attn, tmp_path):
    for name, content in (("cat", b"\x89PNG\r\n\x1a\n"), ("dog", b"\xff\xd8\xff")):
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / "1.png").write_bytes(content)
    output = keras_attn.output("data", tmp_path / "pets", "--task", "image_classification")
    assert "1 rows, 1 malformed" in output
    assert "dog/1.png: expected a PNG image, found JPEG: convert it" in output


def test_files_of_other_columns_are_refused(keras_attn, tmp_path):
    for name, content in (("a.csv", "text,label\nx,1\n"), ("b.csv", "text,label,score\nx,1,2\n")):
        (tmp_path / name).write_text(content)
    error = keras_attn.refusal("data", tmp_path / "a.csv", tmp_path / "b.csv")
    assert "b.csv has other columns than" in error


def test_what_two_files_do_not_share(keras_attn, tmp_path):
    for name, content in (("a.tsv", "x\t1\ny\t2\n"), ("b.tsv", "z\t2\nx\t3\nw\t3\n")):
        (tmp_path / name).write_text(content)
    output = keras_attn.output("data", tmp_path / "a.tsv", "--test", tmp_path / "b.tsv", *LABELS)
    assert (
        "1 of 3 rows of test have a text of train.\nLabels of test that train lacks: '3' 2"
        in output
    )
    for name, content in (("a.de", "x\n\n"), ("a.en", "y\nz\n")):
        (tmp_path / name).write_text(content)
    output = keras_attn.output("data", tmp_path / "a.de", tmp_path / "a.en")
    assert "a.de, line 2, column 1: expected a text, found an empty line" in output
    error = keras_attn.refusal("data", tmp_path / "a.tsv", "--label-separator", ",")
    assert "set --task multi_label_classification or regression" in error
