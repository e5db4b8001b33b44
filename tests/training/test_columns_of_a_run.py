"""Columns of tables that a trained task is measured on."""

import pytest

from keras_attn.data.files import have_columns
from keras_attn.training.measuring import evaluate
from keras_attn.training.run_settings import DataSettings
from tests.export.test_matrix import MATRIX
from tests.refusals import refused
from tests.written import written

pytestmark = pytest.mark.tensorflow

ROWS = ["good,the cat sat", "fair,the mat", "good,cat"]
RECORDED = {"task": "classification", "data": {"columns": {"text": "Satz", "label": "Urteil"}}}


def table(folder, header):
    return written(folder / "test.csv", [header, *ROWS])


def test_those_of_the_run_where_none_are_given(tmp_path, capsys):
    task = MATRIX["classification TransformerEncoder"]()
    path = table(tmp_path, "Urteil,Satz")
    found = evaluate(task, DataSettings([path]), recorded=RECORDED)
    assert f"{path}: columns text=Satz, label=Urteil, as in the run" in capsys.readouterr().out
    columns = RECORDED["data"]["columns"]
    assert evaluate(task, DataSettings([path], columns=columns)) == found
    assert set(found["labels"]) == {"good", "fair"}


def test_the_usual_ones_where_a_table_has_no_such_columns(tmp_path, capsys):
    task = MATRIX["classification TransformerEncoder"]()
    path = table(tmp_path, "label,text")
    found = evaluate(task, DataSettings([path]), recorded=RECORDED)
    assert "as in the run" not in capsys.readouterr().out
    assert set(found["labels"]) == {"good", "fair"}


def test_which_files_have_columns(tmp_path):
    path = table(tmp_path, "Urteil,Satz")
    assert have_columns(path, ["Satz"])
    assert not have_columns(path, ["Satz", "Wort"])
    assert have_columns(written(tmp_path / "a.jsonl", ['{"a": 1, "b": 2}']), ["b"])
    lines = [written(tmp_path / name, ["a b"]) for name in ("a.txt", "b.txt")]
    assert not have_columns(lines, ["a"])
    refused("missing.csv: no such file", have_columns, str(tmp_path / "missing.csv"), ["a"])
