"""Runs of taggers: texts to task, measured, resumed, exported, asked."""

import json

import numpy as np
import pytest
import yaml

from keras_attn.cli import main
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.tasks import MaskedLMTask, TokenClassificationTask, open_task
from keras_attn.tokenizers import WordPieceTokenizer
from keras_attn.training import run as job
from keras_attn.validation import UserError

pytestmark = pytest.mark.tensorflow

SIZES = {
    "num_layers": 1,
    "hidden_dim": 32,
    "num_heads": 2,
    "intermediate_dim": 64,
    "dropout": 0.0,
}
OF_BERT = {"max_length": 48, "attention_dropout": 0.0}
TRAINING = {
    "batch_tokens": 512,
    "schedule": "constant",
    "learning_rate": 0.01,
    "warmup_steps": 10,
    "jit": "off",
}
PEOPLE, PLACES = ["anna", "ben", "carla", "dario"], ["rome", "oslo", "lima", "quito"]
SENTENCES = [
    ("{person} lives in {place} .", "{p} O O {l} O"),
    ("{person} and {person2} left {place} .", "{p} O {q} O {l} O"),
    ("in {place} {person} sings .", "O {l} {p} O O"),
]


def tagged(count, seed):
    """Sentences of people, of one name or two, and places; washington is both."""
    generator = np.random.default_rng(seed)

    def person():
        names = generator.choice([*PEOPLE, "washington"], generator.integers(1, 3))
        return " ".join(names), " ".join(["B-PER", "I-PER"][: len(names)])

    lines = []
    for _ in range(count):
        text, tags = SENTENCES[generator.integers(len(SENTENCES))]
        (first, p), (second, q) = person(), person()
        place = generator.choice([*PLACES, "washington"])
        words = text.format(person=first, person2=second, place=place)
        lines.append(f"{words}\t{tags.format(p=p, q=q, l='B-LOC')}")
    return lines


def written(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def labelled(folder):
    return written(folder / "labels.tsv", ["anna\ta", "ben\tb", "oslo\ta"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    data = {"train": written(folder / "train.tsv", tagged(300, 1))}
    data |= {"test": written(folder / "test.tsv", tagged(41, 2)), "hold_out": 29}
    layer = {"preset": "bert_tiny", "task": "tag", "data": data, "model": SIZES | OF_BERT}
    layer["training"] = TRAINING | {"steps": 80, "validate_every": 80}
    layer["tokenizers"] = {"text": {"vocabulary_size": 120}}
    return folder, job.train(folder / "run", layer)


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
    folder, results = trained
    run, exported = str(folder / "run"), str(tmp_path / "exported")
    test, out = str(folder / "test.tsv"), tmp_path / "out.json"
    assert main(["export", run, exported]) == 0
    assert main(["verify", exported]) == 0
    answers = []
    for model in (run, exported):
        metrics = ["--metrics", "tag_accuracy", "span_f1"] if model == exported else []
        assert main(["evaluate", model, "--data", test, "--json", str(out), *metrics]) == 0
        assert json.loads(out.read_text()) == pytest.approx(results)
        capsys.readouterr()
        assert main(["predict", model, "--scores", "anna lives in oslo .", ""]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    first, second = (line.split("\t") for line in answers[0].splitlines())
    assert first[0] == "B-PER O O B-LOC O"
    assert -0.5 < float(first[1]) == float(first[2]) < 0
    assert second[0] == ""
    assert abs(float(second[1])) == 0
    assert main(["predict", run, "--n-best", "2", "anna"]) == 2
    assert "Every word has one tag. Received: n_best=2" in capsys.readouterr().err
    assert main(["evaluate", run, "--data", test, "--metrics", "bleu"]) == 2
    assert "must be one of 'tag_accuracy', 'span_f1'" in capsys.readouterr().err


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
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "bad.tsv: 1 malformed lines left out." in shown
    assert shown.splitlines()[1].split() == ["texts", "1"]


@pytest.mark.slow
def test_a_rare_tag_may_be_held_out(trained, tmp_path):
    lines = (trained[0] / "train.tsv").read_text().splitlines()[:30]
    data = {"train": written(tmp_path / "train.tsv", lines)}
    data["valid"] = written(tmp_path / "valid.tsv", ["anna sings\tB-NEW O"])
    layer = {"init": str(trained[0] / "run"), "data": data}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1, "epochs": None}})
    rows = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    values = dict(zip(rows[0].split(","), rows[-1].split(","), strict=True))
    assert float(values["val_tag_accuracy"]) == 50


@pytest.mark.slow
def test_a_tag_that_the_task_has_not_makes_a_new_head(trained, tmp_path, capsys):
    path = written(tmp_path / "train.tsv", ["anna sings\tB-NEW O"] * 8)
    layer = {"init": str(trained[0] / "run"), "data": {"train": path, "valid": path}}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1, "epochs": None}})
    assert open_task(tmp_path / "run").labels == ["B-NEW", "O"]
    expected = "of the tag task, whose labels are others: B-LOC, B-PER, "
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["mlm", pytest.param("classify", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_from_the_encoder_of_another_task(kind, trained, tmp_path, capsys):
    words = sorted({word for line in tagged(300, 1) for word in line.split("\t")[0].split()})
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    encoder = Bert(tokenizer.vocabulary_size, 1, 12, 2, 17, max_length=15)
    MaskedLMTask(MaskedLanguageModel(encoder), tokenizer, 15).save(tmp_path / "mlm")
    init = str(tmp_path / "mlm")
    training = TRAINING | {"steps": 1, "epochs": None}
    if kind == "classify":
        init = str(tmp_path / "classify")
        data = {"train": labelled(tmp_path), "valid": labelled(tmp_path)}
        layer = {"init": str(tmp_path / "mlm"), "task": "classify", "data": data}
        job.train(init, layer | {"training": training})
    layer = {"init": init, "task": "tag", "data": {"train": str(trained[0] / "train.tsv")}}
    capsys.readouterr()
    job.train(tmp_path / "run", layer | {"training": training})
    assert "head: new and untrained: output; encoder and vocabulary" in capsys.readouterr().out
    task = open_task(tmp_path / "run")
    assert (task.kind, task.max_length) == ("tag", 15)
    assert len(task.predict(["anna lives"])[0].split()) == 2


@pytest.mark.slow
def test_a_classifier_from_the_encoder_of_a_tagger(trained, tmp_path):
    data = {"train": labelled(tmp_path), "valid": labelled(tmp_path)}
    layer = {"init": str(trained[0] / "run"), "task": "classify", "data": data}
    job.train(tmp_path / "run", layer | {"training": TRAINING | {"steps": 1, "epochs": None}})
    assert open_task(tmp_path / "run").predict(["anna"])[0] in ("a", "b")


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_alike(trained, tmp_path):
    layer = {"preset": "encoder_tiny", "task": "tag", "model": SIZES | {"dropout": 0.1}}
    layer["tokenizers"] = {"text": {"vocabulary_size": 120}}
    layer["data"] = {"train": str(trained[0] / "train.tsv")}
    layer["training"] = TRAINING | {"epochs": 2}
    job.train(tmp_path / "whole", layer)
    job.train(tmp_path / "halves", layer | {"training": layer["training"] | {"epochs": 1}})
    job.train(tmp_path / "halves", {"training": {"epochs": 2}}, resume=True)
    tables = [(tmp_path / name / "metrics.csv").read_text() for name in ("whole", "halves")]
    assert tables[0] == tables[1]
    models = [open_task(tmp_path / name).backbone.weights for name in ("whole", "halves")]
    for ours, theirs in zip(*models, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"metrics": ["bleu"]}, "must be one of 'tag_accuracy', 'span_f1'"),
        ({"decoding": {"beams": 2}}, "has no `decoding`. Received: decoding=.'beams': 2."),
        ({"model": {"pooling": "max"}}, "Received: model setting='pooling'"),
        ({"preset": "lm_tiny"}, "one for this task.*task='tag', tasks_of_preset=.'lm'"),
        ({"data": {"test": "long.tsv"}}, "room for every test text .*longest=.*, max_source_len"),
        ({"data": {"train": ["a", "b", "c"]}}, "one tab-separated file, or a file of texts and o"),
    ],
)
def test_mistakes(layer, message, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "long.tsv", ["anna " * 40 + "\t" + "O " * 40])
    data = {"train": str(trained[0] / "train.tsv")} | layer.get("data", {})
    base = {"preset": "bert_tiny", "task": "tag"}
    base["tokenizers"] = {"text": {"kind": "word_piece", "vocabulary_size": 120}}
    with pytest.raises(UserError, match=message):
        job.train(tmp_path / "run", base | layer | {"data": data})
