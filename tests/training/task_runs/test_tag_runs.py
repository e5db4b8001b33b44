"""Runs of taggers: texts to task, measured, resumed, exported, asked."""

import json

import pytest
import yaml

from keras_attn.cli import main
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.tasks import MaskedLMTask, TokenClassificationTask, open_task
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.training import run as job
from tests.training.stand_in import metrics_rows
from tests.training.task_runs import made
from tests.written import written

pytestmark = pytest.mark.tensorflow


def labelled(folder):
    return written(folder / "labels.tsv", ["anna\ta", "ben\tb", "oslo\ta"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    numbers = {"steps": 80, "validate_every": 80}
    return made.trained(
        "token_classification", tmp_path_factory.mktemp("tags"), (300, 41), hold_out=29, **numbers
    )


@pytest.mark.slow
def test_a_name_is_known_by_what_stands_beside_it(trained):
    folder, results = trained
    task = open_task(folder / "run")
    assert type(task) is TokenClassificationTask
    assert task.labels == ["B-LOC", "B-PER", "I-PER", "O"]
    assert task.backbone.encoder.pooler is None
    assert results["items"] == 41
    assert results["tag_accuracy"] > 95
    assert results["span_f1"] > 95
    texts = ["washington lives in washington .", "in washington carla washington sings ."]
    assert task.predict(texts) == ["B-PER O O B-LOC O", "O B-LOC B-PER I-PER O O"]
    sample = json.loads((folder / "run" / "samples.json").read_text())[-1]["texts"][0]
    assert set(sample[1].split()) <= set(task.labels)
    settings = yaml.safe_load((folder / "run" / "run.yaml").read_text())
    assert settings["training"]["metric"] == "tag_accuracy"
    assert settings["training"]["metric_goal"] == "max"


@pytest.mark.slow
def test_by_the_command_line(trained, tmp_path, capsys):
    answers = made.answers_of_a_run_and_its_export(
        trained, tmp_path, capsys, "--scores", "anna lives in oslo .", ""
    )
    first, second = (line.split("\t") for line in answers.splitlines())
    assert first[0] == "B-PER O O B-LOC O"
    assert -0.5 < float(first[1]) == float(first[2]) < 0
    assert second[0] == ""
    assert abs(float(second[1])) == 0
    run, test = trained[0] / "run", trained[0] / "test"
    error = made.refusal(capsys, "predict", run, "--n-best", "2", "anna")
    assert "Every word has one tag. Received: n_best=2" in error
    error = made.refusal(capsys, "evaluate", run, "--data", test, "--metrics", "bleu")
    assert "must be one of 'tag_accuracy', 'span_f1'" in error


def test_test_tags_that_training_has_not_are_told(trained, tmp_path, capsys):
    path = written(tmp_path / "new.tsv", ["anna sings\tB-NEW O", "ben sings\tB-PER O"])
    assert main(["evaluate", str(trained[0] / "run"), "--data", path]) == 0
    line = f"{path}: 1 of 4 labels are unknown to the model and count as wrong: 'B-NEW'"
    assert capsys.readouterr().out.splitlines()[0] == line


def test_malformed_lines(trained, tmp_path, capsys):
    path = written(tmp_path / "bad.tsv", ["anna sings\tB-PER O", "anna\tB-PER O"])
    assert main(["evaluate", str(trained[0] / "run"), "--data", path]) == 2
    expected = "bad.tsv, line 2, column 6: expected a tag for each of 1 words, found 2 tags"
    assert expected in capsys.readouterr().err
    arguments = ["evaluate", str(trained[0] / "run"), "--skip-bad-lines", "--data", path]
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert "of 2 rows 1 are malformed, which is more than `data.max_dropped` allows (5%)" in shown
    assert main([*arguments, "--max-dropped", "0.5"]) == 0
    shown = capsys.readouterr().out
    first, count, items, *_ = shown.splitlines()
    assert first.startswith("malformed: ")
    assert expected in first
    assert count == f"{path}: 1 malformed lines left out."
    assert items.split() == ["texts", "1"]


@pytest.mark.slow
def test_a_rare_tag_may_be_held_out(trained, tmp_path):
    lines = (trained[0] / "train").read_text().splitlines()[:30]
    data = {"train": written(tmp_path / "train.tsv", lines)}
    data["valid"] = written(tmp_path / "valid.tsv", ["anna sings\tB-NEW O"])
    layer = {"init": str(trained[0] / "run"), "data": data}
    job.train(tmp_path / "run", layer | {"training": made.LONGER | {"steps": 1, "epochs": None}})
    assert float(metrics_rows(tmp_path / "run")[-1]["val_tag_accuracy"]) == 50


@pytest.mark.slow
def test_a_tag_that_the_task_has_not_makes_a_new_head(trained, tmp_path, capsys):
    path = written(tmp_path / "train.tsv", ["anna sings\tB-NEW O"] * 8)
    layer = {"init": str(trained[0] / "run"), "data": {"train": path, "valid": path}}
    job.train(tmp_path / "run", layer | {"training": made.LONGER | {"steps": 1, "epochs": None}})
    assert open_task(tmp_path / "run").labels == ["B-NEW", "O"]
    expected = "of the token_classification task, whose labels are others: B-LOC, B-PER, "
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["masked_lm", "classification"])
@pytest.mark.slow
def test_from_the_encoder_of_another_task(kind, trained, tmp_path, capsys):
    words = sorted({word for line in made.tagged(300, 1) for word in line.split("\t")[0].split()})
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    encoder = Bert(tokenizer.vocabulary_size, 1, 12, 2, 17, max_length=15)
    MaskedLMTask(MaskedLanguageModel(encoder), tokenizer, 15).save(tmp_path / "masked_lm")
    init = str(tmp_path / "masked_lm")
    training = made.LONGER | {"steps": 1, "epochs": None}
    if kind == "classification":
        init = str(tmp_path / "classification")
        data = {"train": labelled(tmp_path), "valid": labelled(tmp_path)}
        layer = {"init": str(tmp_path / "masked_lm"), "task": "classification", "data": data}
        job.train(init, layer | {"training": training})
    layer = {
        "init": init,
        "task": "token_classification",
        "data": {"train": str(trained[0] / "train")},
    }
    capsys.readouterr()
    job.train(tmp_path / "run", layer | {"training": training})
    assert "head: new and untrained: output; encoder and vocabulary" in capsys.readouterr().out
    task = open_task(tmp_path / "run")
    assert (task.kind, task.max_length) == ("token_classification", 15)
    assert len(task.predict(["anna lives"])[0].split()) == 2


@pytest.mark.slow
def test_a_classifier_from_the_encoder_of_a_tagger(trained, tmp_path):
    data = {"train": labelled(tmp_path), "valid": labelled(tmp_path)}
    layer = {"init": str(trained[0] / "run"), "task": "classification", "data": data}
    job.train(tmp_path / "run", layer | {"training": made.LONGER | {"steps": 1, "epochs": None}})
    assert open_task(tmp_path / "run").predict(["anna"])[0] in ("a", "b")
