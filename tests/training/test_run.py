"""Whole runs: from texts to a measured task, begun again, continued from another, refused."""

import json
import os
import pathlib
import shutil
from functools import partial

import keras
import pytest
import yaml

from keras_attn.data import read_pairs
from keras_attn.models import PRESETS
from keras_attn.tasks import Seq2SeqTask, measure, open_task
from keras_attn.training import run as job
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.training.task_runs.seq2seq import Seq2SeqRun
from keras_attn.validation import UserError
from tests.refusals import refused
from tests.training.made_run import run_settings, write_parts
from tests.training.module_process import finished as finished_process
from tests.training.module_process import start_module
from tests.training.stand_in import metrics_rows

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="module")
def finished(words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    data = {name: [path] for name, path in words.items()}
    return folder, job.train(folder, run_settings(data))


def test_a_run_leaves_everything_it_should(finished, words):
    folder, results = finished
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    files = "run.yaml metrics.csv timings.csv samples.json report.html summary.json results.json"
    assert names >= {"tokenizers", "checkpoints", "task", "tensorboard", *files.split()}
    assert json.loads((folder / "results.json").read_text()) == results
    assert set(results) == {"items", "per", "wer"}
    lines = pathlib.Path(words["test"]).read_text().splitlines()
    sources = {line.split("\t")[0] for line in lines}
    assert results["items"] == len(sources)
    last = metrics_rows(folder)[-1]
    assert float(last["loss"]) < float(metrics_rows(folder)[0]["loss"])
    assert {"val_loss", "val_perplexity", "val_per", "val_wer"} <= set(last)
    assert "seconds" not in last
    samples = json.loads((folder / "samples.json").read_text())
    assert [sample["step"] for sample in samples] == [
        int(row["step"]) for row in metrics_rows(folder) if row["val_per"]
    ]
    held_out = dict(
        line.split("\t") for line in pathlib.Path(words["valid"]).read_text().splitlines()
    )
    assert len(samples[-1]["texts"]) == 8
    for source, reference, _ in samples[-1]["texts"]:
        assert held_out[source] in reference.split(" / ")


def test_the_trained_task_predicts(finished):
    folder, _ = finished
    task = open_task(folder)
    assert isinstance(task, Seq2SeqTask)
    assert len(task.predict(["abc", "fed"])) == 2
    assert set(task.source_tokenizer.vocabulary[4:]) == set("abcdef")
    # Seven letters and an end, a quarter more, in steps of eight.
    assert (task.decoding.max_source_length, task.decoding.max_length) == (16, 16)
    assert task.decoding.beams == 4


def test_what_was_resolved_is_written_down(finished):
    folder, _ = finished
    content = yaml.safe_load((folder / "run.yaml").read_text())
    assert content["training"]["jit"] == "off"
    assert content["training"]["strategy"] == "one"
    assert content["training"]["cpu_shards"] == min(len(os.sched_getaffinity(0)), 4)
    assert (content["training"]["metric"], content["training"]["metric_goal"]) == ("per", "min")
    assert content["data"]["max_source_length"] == 16
    assert content["decoding"]["max_length"] == 16
    assert content["tokenizers"]["source"] == {"kind": "characters", "lowercase": True}
    settings = RunSettings.read(folder / "run.yaml")
    settings.write(folder / "again.yaml")
    assert RunSettings.read(folder / "again.yaml") == settings
    assert (folder / "again.yaml").read_text() == (folder / "run.yaml").read_text()


def test_a_finished_run_resumed_says_the_same(finished):
    folder, results = finished
    before = (folder / "metrics.csv").read_text()
    assert job.train(folder, resume=True) == results
    assert (folder / "metrics.csv").read_text() == before


@pytest.mark.slow
def test_training_may_go_on_for_longer(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "run")
    job.train(tmp_path / "run", {"training": {"epochs": 3}}, resume=True)
    assert metrics_rows(tmp_path / "run")[: len(metrics_rows(folder))] == metrics_rows(folder)
    assert len(metrics_rows(tmp_path / "run")) > len(metrics_rows(folder))


@pytest.mark.slow
def test_fine_tuning_starts_from_the_task(finished, words, tmp_path):
    folder, _ = finished
    policy = keras.config.dtype_policy()
    layer = {
        "init": str(folder),
        "data": {"train": [words["train"]], "valid": [words["valid"]], "test": [words["test"]]},
        "training": run_settings("")["training"]
        | {"epochs": 1, "learning_rate": 1e-9, "precision": "mixed_bfloat16"},
        "decoding": {"beams": 2},
    }
    results = job.train(tmp_path / "tuned", layer)
    assert keras.config.dtype_policy() == policy
    before, after = Seq2SeqTask.load(folder / "task"), Seq2SeqTask.load(tmp_path / "tuned" / "task")
    for ours, theirs in zip(after.backbone.weights, before.backbone.weights, strict=True):
        assert abs(ours.numpy() - theirs.numpy()).max() < 1e-5
    assert after.source_tokenizer.vocabulary == before.source_tokenizer.vocabulary
    assert (after.decoding.beams, after.decoding.length_penalty) == (
        2,
        before.decoding.length_penalty,
    )
    assert set(results) == {"items", "per", "wer"}  # the metrics of the run it came from
    assert after.decoding.max_source_length == before.decoding.max_source_length
    assert after.decoding.max_length == before.decoding.max_length


@pytest.mark.slow
def test_precision_ends_with_the_training(words, tmp_path, monkeypatch):
    computed_in = []
    of_run = PairsRun.measure

    def recorded(run, task, *arguments, **options):
        layers = [layer for layer in task.backbone.layers if layer.variables]
        computed_in.append({layer.compute_dtype for layer in layers})
        return of_run(run, task, *arguments, **options)

    monkeypatch.setattr(PairsRun, "measure", recorded)
    data = {name: [path] for name, path in words.items()}
    layer = run_settings(data, epochs=1, precision="mixed_bfloat16")
    results = job.train(tmp_path / "run", layer)
    assert computed_in[0] == {"bfloat16"}  # validation, in the midst of it
    assert computed_in[-1] == {"float32"}
    task = open_task(tmp_path / "run")
    assert {layer.dtype_policy.name for layer in task.backbone.layers} == {"float32"}
    assert results == measure(task, read_pairs([words["test"]]), ["per", "wer"])


@pytest.mark.slow
def test_without_metrics_the_loss_chooses(finished, words, tmp_path):
    layer = run_settings(words["train"], steps=2) | {"preset": None, "model": {}}
    layer["init"] = str(finished[0] / "task")
    assert job.train(tmp_path / "run", layer) is None
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["metric"] == "loss"
    assert "val_per" not in metrics_rows(tmp_path / "run")[-1]


@pytest.mark.slow
def test_the_end_is_judged_by_all_words_held_out(words, tmp_path, monkeypatch):
    decoded = []
    of_run = PairsRun.measure

    def counted(run, task, pairs, *arguments, **named):
        decoded.append(len(set(pairs.sources)))
        return of_run(run, task, pairs, *arguments, **named)

    monkeypatch.setattr(PairsRun, "measure", counted)
    data = {"train": [words["train"]], "valid": [words["valid"]], "decode_limit": 2}
    job.train(tmp_path / "run", run_settings(data, average_last=2, validate_every=0))
    whole = len(set(read_pairs(words["valid"]).sources))
    assert decoded == [2, 2, whole, whole]  # two epochs, the best weights, the average


@pytest.mark.slow
def test_a_mistake_can_be_put_right_without_cleaning_up(words, tmp_path):
    wrong = run_settings(words["train"], epochs=1)
    wrong["model"] = wrong["model"] | {"num_heads": 3}
    refused("num_heads=3, hidden_dim=8", job.train, tmp_path / "run", wrong)
    job.train(tmp_path / "run", run_settings(words["train"], steps=1))
    assert (tmp_path / "run" / "task" / "task.json").is_file()


@pytest.mark.slow
def test_a_killed_and_resumed_run_equals_a_whole_one(words, tmp_path):
    first, second, killed = (tmp_path / name for name in ("first", "second", "killed"))
    start = partial(start_module, "tests.training.killed_job")
    whole = start(words["train"], first, "nowhere", second, "nowhere")
    finished_process(start(words["train"], killed, "dies"), -9)
    assert (killed / "checkpoints" / "step-00000010").is_dir()
    resumed = start(words["train"], killed, "resume")
    finished_process(whole)
    assert "Resuming from" in finished_process(resumed)[0]
    expected = (first / "metrics.csv").read_bytes()
    assert len(expected.splitlines()) > 4
    for folder in (second, killed):
        assert (folder / "metrics.csv").read_bytes() == expected, folder.name
        assert (folder / "run.yaml").read_bytes() == (first / "run.yaml").read_bytes()
    predictions = [open_task(folder).predict(["abc", "fed"]) for folder in (first, killed)]
    assert predictions[0] == predictions[1]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["lstm_2x64", "gnmt_small", "conv_s2s"])
def test_a_preset_of_any_family_is_trained(words, tmp_path, preset):
    sizes = {"num_layers": 1, "hidden_dim": 8}
    layer = run_settings(words["train"], steps=3) | {"preset": preset, "model": sizes}
    job.train(tmp_path / "run", layer)
    backbone = open_task(tmp_path / "run").backbone
    assert type(backbone).__name__ == PRESETS[preset].family
    assert backbone.get_config()["hidden_dim"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["train_tokenizers", "examples", "task"])
def test_a_run_that_ended_before_its_first_step_can_be_resumed(
    words, tmp_path, monkeypatch, moment
):
    def ends(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Seq2SeqRun, moment, ends)
        with pytest.raises(KeyboardInterrupt):
            job.train(tmp_path / "run", run_settings(words["train"], steps=1))
    tokenizers = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("token*.json")}
    assert bool(tokenizers) == (moment != "train_tokenizers")
    job.train(tmp_path / "run", resume=True)
    assert metrics_rows(tmp_path / "run")[-1]["step"] == "1"
    assert all(path.stat().st_mtime_ns == time for path, time in tokenizers.items())


INIT = {"preset": None, "init": "x", "model": {}}
MISTAKES = [
    ({"metrics": ["pre"]}, "Did you mean 'per'.* metric='pre'"),
    (
        {"task": "translate"},
        "must be one of 'seq2seq', 'classification', 'multi_label_classification', .*'forecast'",
    ),
    ({"data": {"train": "nowhere.tsv"}}, "nowhere.tsv"),
    ({"data": {"train": ["a", "b", "c"]}}, "a: no such file"),
    (
        {"preset": "lm_tiny", "task": "seq2seq"},
        "must be one for this task. Received: preset=.lm_tiny., task=.seq2seq., .*=.*'causal_lm'",
    ),
    ({"model": {"num_layer": 2}}, "Did you mean 'num_layers'. Received: model setting='num_layer'"),
    (
        {"preset": "lstm_2x64", "model": {"num_heads": 2}},
        "must be one of 'num_layers', 'hidden_dim', 'cell'.* Received: model setting='num_heads'",
    ),
    ({"decoding": {"beam": 2}}, "Did you mean 'beams'"),
    ({"tokenizers": {"source": {"kind": "letters"}}}, "'letters'"),
    ({"tokenizers": {"traget": {"kind": "symbols"}}}, "Did you mean 'target'"),
    ({"data": {"max_target_length": 1}}, "No pair of .* is left"),
    ({"data": {"hold_out": 5000}}, "count=5000"),
    (INIT | {"init": "nowhere"}, "nowhere does not exist"),
    (INIT | {"model": {"num_layers": 1}}, "cannot be combined with `--init`"),
    (
        {"training": {"metric": "bleu", "epochs": 1}},
        "`training.metric` must be one of 'loss'.*'wer'. Received: training.metric='bleu'",
    ),
    (
        {"model": {"vocabulary_size": 5}},
        "must be one of 'num_layers'.* Received: model setting='vocabulary_size'",
    ),
    (
        {"model": {"activation": "bogus"}},
        "must name an activation of Keras. Received: activation='bogus'",
    ),
    (
        {"data": {"train": "cmudict", "hold_out": 20}},
        "whose parts are fixed. Received: hold_out=20",
    ),
    (
        INIT | {"tokenizers": {"source": {"kind": "symbols"}}},
        "the tokenizers come from the checkpoint",
    ),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_mistakes_are_told_in_one_line(words, tmp_path, changes, message):
    data = {"train": words["train"]} | changes.get("data", {})
    with pytest.raises((UserError, OSError), match=message) as caught:
        job.train(tmp_path / "run", run_settings(data) | changes | {"data": data})
    if isinstance(caught.value, UserError):
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            {"model": {"hidden_dim": 16}},
            "keeps these settings.* model.hidden_dim=16, which is 8 in",
        ),
        ({"preset": "g2p_base"}, "keeps these settings.* preset='g2p_base', which is 'g2p_small'"),
        ({"data": {"max_source_length": 12}}, "data.max_source_length=12, which is 16 in run.yaml"),
        ({"decoding": {"beams": 5}}, "keeps these settings.* Received: decoding.beams=5"),
        ({"data": {"train": ["nowhere.tsv"]}}, "nowhere.tsv"),
        (
            {"training": {"batch_tokens": 99, "epochs": 3}},
            "keeps these .* training.batch_tokens=99",
        ),
        ({"training": {"seed": 99, "epochs": 3}}, "keeps these .* training.seed=99, which is 1"),
        (
            {"training": {"learning_rate": 9.0}},
            "is finished.* Received: training.learning_rate=9.0",
        ),
    ],
)
def test_resuming_with_a_mistake_changes_nothing(finished, layer, message):
    folder, _ = finished
    before = (folder / "run.yaml").read_bytes()
    with pytest.raises((UserError, OSError), match=message):
        job.train(folder, layer, resume=True)
    assert (folder / "run.yaml").read_bytes() == before


def test_other_data_are_noticed_whatever_their_number(finished, words, tmp_path):
    """As many words of the same lengths, in one of which two letters are swapped."""
    folder, _ = finished
    lines = pathlib.Path(words["train"]).read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line[0] != line[1])
    lines[place] = lines[place][1] + lines[place][0] + lines[place][2:]
    (tmp_path / "others.tsv").write_text("\n".join(lines) + "\n")
    layer = {"data": {"train": [str(tmp_path / "others.tsv")]}, "training": {"epochs": 3}}
    before = (folder / "run.yaml").read_bytes()
    refused("The training data must be those of the run", job.train, folder, layer, resume=True)
    assert (folder / "run.yaml").read_bytes() == before


def test_validation_texts_that_are_too_long_are_not_judged(words, tmp_path, capsys):
    valid = tmp_path / "valid.tsv"
    valid.write_text(f"{pathlib.Path(words['valid']).read_text()}{'abcde' * 9}\tAA\n")
    data = {"train": [words["train"]], "valid": [str(valid)]}
    job.train(tmp_path / "run", run_settings(data, epochs=1))
    errors = json.loads((tmp_path / "run" / "errors.json").read_text())
    sources = {line.split("\t")[0] for line in valid.read_text().splitlines()}
    assert errors["items"] == len(sources) - 1
    assert "0 pairs longer than 16 source or 16 target tokens, 0 without a token, and 1 for" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_more_malformed_rows_than_allowed_are_refused(words, tmp_path, part):
    damaged = tmp_path / "damaged.tsv"
    damaged.write_text(pathlib.Path(words["valid"]).read_text() + "no tab\n" * 9)
    data = {"train": [words["train"]], "skip_bad_lines": True, part: [str(damaged)]}
    settings = run_settings(data, epochs=1)
    message = r"damaged.tsv.*: of .* rows 9 are malformed, which is more .* allows \(5%\)"
    refused(message, job.train, tmp_path / "run", settings)


def test_test_texts_are_looked_at_before_training(words, tmp_path):
    (tmp_path / "long.tsv").write_text("abc\tAA\nabcdefabcdefabcdefabcdef\tAA\n")
    data = {"train": [words["train"]], "test": [str(tmp_path / "long.tsv")]}
    with pytest.raises(
        UserError, match="every test text and its end. Received: longest=25, max_source_length=16."
    ):
        job.train(tmp_path / "run", run_settings(data))
    (tmp_path / "long.tsv").write_text("abcdefabcdefabcdefabcdef\tAA\n")
    data = {"train": [words["train"]], "valid": [str(tmp_path / "long.tsv")]}
    with pytest.raises(UserError, match="No pair of .*long.tsv is left: of 1 pairs"):
        job.train(tmp_path / "other", run_settings(data))


def test_a_model_that_is_too_large_is_refused_before_training(words, tmp_path):
    small = run_settings(words["train"], max_parameters=1000)
    refused(r"at most 1,000 parameters\. Received: [\d,]+\.", job.train, tmp_path / "run", small)
    assert not (tmp_path / "run" / "metrics.csv").exists()


def test_used_folders_and_nothing_to_resume(finished, words, tmp_path):
    folder, _ = finished
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    with pytest.raises(UserError, match="must be empty, or the run in it resumed .* which holds"):
        job.train(folder, run_settings(words["train"]))
    assert before == {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.name != ".lock"}
    with pytest.raises(UserError, match="There is no run to resume. Received: out='.*nowhere'."):
        job.train(tmp_path / "nowhere", resume=True)
    (tmp_path / "file").write_text("text")
    with pytest.raises(UserError, match="must be writable: .* Received: '.*file'"):
        job.train(tmp_path / "file", run_settings(words["train"]))
