import builtins
import html.parser
import json
import re

import pytest

from keras_attn.training.reporting.report import write_report
from tests.refusals import message_of, refused

METRICS = """\
step,epoch,loss,nll,accuracy,gradient_norm,learning_rate,val_nll,val_per
3,1,2.5,2.25,0.5,1.5,0.001,,
6,1,1.5,1.25,0.75,0.5,0.0005,1.375,12.5
"""
TIMINGS = """\
step,epoch,seconds,target_tokens,target_tokens_per_second,padding_share,memory_mb
6,1,120.0,60000,512.0,0.125,1234
"""
SAMPLES = [
    {"step": 3, "texts": [["old", "O L D", "O"]]},
    {"step": 6, "texts": [["<script>a&b", "A / B", "B"], ["c", "C", "<b>D</b>"]]},
]
VOID = {"meta", "br", "path", "use", "image", "rect"}


@pytest.fixture
def folder(tmp_path):
    run = tmp_path / "<my> run"
    run.mkdir()
    (run / "metrics.csv").write_text(METRICS)
    (run / "timings.csv").write_text(TIMINGS)
    (run / "samples.json").write_text(json.dumps(SAMPLES))
    (run / "run.yaml").write_text("data:\n  train:\n  - </pre><script>x</script>.tsv\n")
    return run


class Page(html.parser.HTMLParser):
    """Texts by the tag they are in, and whether every tag that opens closes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.links = [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.links += [
            value for name, value in attributes if name.split(":")[-1] in ("href", "src")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.links += [
            value for name, value in attributes if name.split(":")[-1] in ("href", "src")
        ]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(text)


def test_page(folder):
    target = write_report(folder)
    assert target == folder / "report.html"
    text = target.read_text()
    page = Page(text)
    assert page.texts["h1"] == ["<my> run"]
    assert page.texts["p"] == ["6 updates so far, in epoch 1"]
    cells = page.texts["td"]
    for name, value in (("validation nll", "1.3750"), ("validation per", "12.5000")):
        assert cells[cells.index(name) + 1] == value
    assert cells[cells.index("target tokens a second") + 1] == "500"
    assert cells[cells.index("<script>a&b") :][:6] == [
        *["<script>a&b", "A / B", "B"],
        *["c", "C", "<b>D</b>"],
    ]
    assert text.count('class="other"') == 1  # what equals one of the references is right
    assert "old" not in cells
    assert page.texts["pre"][0].startswith("data:\n  train:\n  - </pre><script>")
    assert "script" not in page.texts
    # Nothing comes from elsewhere.
    assert all(link.startswith("#") for link in page.links)
    drawn = set(re.findall(r"<!-- (.*?) -->", text))
    assert {"training", "validation", "PER", "learning rate", "norm of the gradient"} <= drawn
    assert "BLEU" not in drawn


def test_page_of_a_finished_run(folder):
    summary = {"step": 6, "kept": "best", "metric": "per", "value": 12.5}
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "results.json").write_text(json.dumps({"items": 1234, "per": 11.25}))
    page = Page(write_report(folder).read_text())
    assert page.texts["p"] == ["6 updates; kept: best weights, per 12.5000"]
    cells = page.texts["td"]
    assert cells[cells.index("test per") + 1] == "11.2500"
    assert cells[cells.index("test items") + 1] == "1234"


def test_what_is_missing_is_left_out(folder):
    for name in ("timings.csv", "samples.json", "run.yaml"):
        (folder / name).unlink()
    titles = Page(write_report(folder).read_text()).texts["h2"]
    assert titles == ["Curves", "Results", "Settings"]


def test_no_run(tmp_path):
    refused("needs a run with at least one row", write_report, tmp_path)


def test_a_damaged_table(folder):
    (folder / "metrics.csv").write_bytes(b"step,nll\n1,\xff\n")
    assert "metrics.csv: expected a UTF-8 file" in message_of(write_report, folder)


def test_without_matplotlib(folder, monkeypatch):
    imported = builtins.__import__

    def missing(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    refused(r"pip install 'keras_attn\[viz\]'", write_report, folder)
    assert not (folder / "report.html").exists()


def test_errors_of_labels(folder):
    errors = {
        "items": 40,
        "wrong": 3,
        "baseline": {"answer": "'a<b', the most frequent one", "metrics": {"per": 40.0}},
        "worst": [["<i>one</i>", "a<b", "c", 0.9]],
        "confused": [["a<b", "c", 2], ["c", "a<b", 1]],
        "labels": ["a<b", "c"],
        "counts": [[18, 2], [1, 19]],
    }
    (folder / "errors.json").write_text(json.dumps(errors))
    (folder / "run.yaml").write_text("training: {metric: per}\n")
    text = write_report(folder).read_text()
    page = Page(text)
    assert "Worst errors: 3 of 40 held-out texts are wrong" in page.texts["h2"]
    assert page.texts["td"][4:7] == ["<i>one</i>", "a<b", "c"]
    assert page.texts["td"][:4] == ["18", "2", "1", "19"]
    assert re.findall(r"--at: ([\d.]+)", text) == ["0.900", "0.100", "0.050", "0.950"]
    assert "Always answering 'a<b'" in page.texts["dd"][2]


def test_many_labels_are_drawn(folder):
    labels = [f"<label> ${number}" for number in range(13)]
    counts = [[9 * (row == column) for column in labels] for row in labels]
    errors = {"items": 9, "wrong": 2, "worst": [], "confused": [["x", "y", 2]]}
    errors |= {"labels": labels, "counts": counts}
    errors |= {"calibration": [[0.25, 0.5, 3], [0.9, 0.75, 6]], "calibration_error": 12.34}
    (folder / "errors.json").write_text(json.dumps(errors))
    text = write_report(folder).read_text()
    page = Page(text)
    assert "Labels confused most" in page.texts["h2"]
    assert page.texts["td"][:2] == ["x → y", "2"]
    assert text.count("<svg") == 3  # curves, matrix, calibration
    assert "The mean difference is 12.3%, of 9 held-out texts." in " ".join(page.texts["p"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[("summary.json", text) for text in ('{"a": 1}', '"x"', '{"step": null}')],
        *[("samples.json", text) for text in ('{"a": 1}', "[5]", '"x"')],
        *[("errors.json", text) for text in ('{"items": 1}', "[5]", '{"items": "x", "wrong": 1}')],
        ("metrics.csv", "step,epoch\n<x>,2\n"),
        ("timings.csv", "a,b\n1,2\n"),
        ("run.yaml", "[1, 2]\n"),
    ],
)
def test_damaged_files_are_one_line(folder, name, content):
    (folder / name).write_text(content)
    assert "\n" not in message_of(write_report, folder)


def test_results_are_those_of_the_kept_weights(folder):
    rows = METRICS.replace("0.001,,", "0.001,1.25,11.5")
    (folder / "metrics.csv").write_text(rows)
    summary = {"step": 6, "kept": "best", "metric": "per", "value": 11.5, "best_step": 3}
    (folder / "summary.json").write_text(json.dumps(summary))
    cells = Page(write_report(folder).read_text()).texts["td"]
    assert cells[cells.index("validation per") + 1] == "11.5000"
