"""A whole run: texts to tokenizers, task, training, and what it measures on the test texts."""

import dataclasses
import importlib.util
import inspect
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import PairExamples, Pairs, group_references, padding_share, plan_epoch
from keras_attn.evaluation import get_metric
from keras_attn.models import get_preset, model_class
from keras_attn.tasks import DecodingSettings, Seq2SeqTask, measure, task_folder
from keras_attn.tokenizers import Tokenizer, load_tokenizer, train_tokenizer
from keras_attn.tokenizers.base import CONFIG_FILE
from keras_attn.training.agreement import Agreement
from keras_attn.training.cluster import WorkerLost
from keras_attn.training.cpu import resolve_parts, share_cores
from keras_attn.training.report import write_report
from keras_attn.training.run_folder import RunFolder
from keras_attn.training.run_settings import RUN_FILE, RunSettings
from keras_attn.training.run_texts import CMUDICT, read_texts
from keras_attn.training.strategy import make_strategy, resolve_jit, resolve_strategy
from keras_attn.training.trainer import Trainer
from keras_attn.training.validation_set import ValidationSet
from keras_attn.validation import UserError, require, require_one_of

RESULTS_FILE = "results.json"
TOKENIZERS_FOLDER = "tokenizers"
LOSS_METRICS = ("loss", "nll", "accuracy", "perplexity")
_MOST_TOKENS = 256
_SAMPLES = 8
# Arguments of the model that follow from the texts and the training.
_NOT_SET = ("vocabulary_size", "target_vocabulary_size", "dtype", "name", "trainable")


def train(
    out: str | Path, *layers: Mapping[str, Any], resume: bool = False
) -> dict[str, float] | None:
    """Runs a training from texts to a saved task.

    The run folder gets `run.yaml` with every setting, `tokenizers/`, what `Trainer` writes, the
    trained task in `task/`, and `results.json` with what was measured on the test texts.

    Args:
        out: The run folder.
        *layers: Nested settings as in run.yaml, the later ones counting more.
        resume: Go on with the run in the folder; its own run.yaml is the first layer then. Where
            there is none yet, and the layers name data, it begins.

    Returns:
        The metrics on the test texts; None where there are none, and for workers other than the
        first.

    Raises:
        UserError: Settings, texts or the folder are not as they must be.
        TrainingInterrupted: A signal ended the training after a checkpoint.
        WorkerLost: Not all workers came, or one of them went away.
    """
    out = Path(out)
    begun = (out / RUN_FILE).is_file()
    if resume and begun:
        settings = RunSettings.read(out / RUN_FILE, *layers)
    else:
        complete = any("data" in layer for layer in layers)
        require(complete or not resume, "There is no run to resume.", out=str(out))
        settings = RunSettings.resolve(*layers)
    resume = resume and begun
    _check(settings)
    settings = _resolved(settings)
    training = settings.training
    # Both before TensorFlow does anything else: the workers must have joined by then.
    share_cores(training.parts)
    strategy = make_strategy(training.strategy, training.join_seconds, training.lost_seconds)
    agreement = Agreement(strategy)
    try:
        return _train(out, settings, strategy, agreement, resume)
    except tf.errors.OpError as error:
        if agreement.workers == 1:
            raise
        reason = error.message.partition("\n")[0][:200]
        raise WorkerLost(f"The other workers cannot be reached: {reason}") from error


def _train(
    out: Path,
    settings: RunSettings,
    strategy: tf.distribute.Strategy,
    agreement: Agreement,
    resume: bool,
) -> dict[str, float] | None:
    chief = agreement.is_chief
    (resume,) = agreement.of_chief(resume)
    shared = settings.to_dict() | {"data": None}  # whose place may be another on each machine
    agreement.require_equal("settings", json.dumps(shared, sort_keys=True).encode())
    allowed = (RUN_FILE, TOKENIZERS_FOLDER)
    with RunFolder(out, resume, allowed, writes=chief):
        pass  # Found to be writable and free before the work begins.
    if chief and not resume:
        # Once more when the lengths are known; a run killed before that can be resumed too.
        settings.write(out / RUN_FILE)
    # Before any tokenizer is made: seeding destroys the resources of SentencePiece.
    keras.utils.set_random_seed(settings.training.seed)

    texts = read_texts(settings.data, settings.training.seed)
    with strategy.scope():
        initial = _initial_task(settings)
    if initial:
        tokenizers = initial.tokenizers
    else:
        if chief:
            tokenizers = _tokenizers(settings, texts["train"], out / TOKENIZERS_FOLDER, resume)
        agreement.meet()
        if not chief:
            tokenizers = _load_tokenizers(out / TOKENIZERS_FOLDER)
    settings, examples = _examples(settings, texts["train"], tokenizers, initial)
    agreement.require_equal("training data", examples.source.ids, examples.target.ids)
    _check_test(settings, texts.get("test"), tokenizers["source"])
    with strategy.scope():
        task = _task(settings, tokenizers, initial)
    _check_size(task, settings.training.max_parameters)
    if chief:
        _report(task, texts, examples, settings)

    validation = _validation_set(task, settings, texts["validation"])
    callbacks = []
    if chief:
        # Written once training begins: settings that do not fit the run leave its own in place.
        write = lambda _: settings.write(out / RUN_FILE)  # noqa: E731
        callbacks.append(keras.callbacks.LambdaCallback(on_train_begin=write))
    Trainer(task, settings.training, out, callbacks).fit(examples, validation, resume=resume)
    results = None
    if "test" in texts and chief:
        results = _measure_test(out, settings, texts["test"])
    if chief and importlib.util.find_spec("matplotlib"):
        print(f"Report: {write_report(out)}", flush=True)
    agreement.meet()
    return results


def _measure_test(out: Path, settings: RunSettings, texts: Pairs) -> dict[str, float]:
    # As whoever loads it will have it: in float32, whatever precision it was trained in.
    task = Seq2SeqTask.load(task_folder(out))
    print(f"Decoding {texts.name} with {task.decoding.beams} beams …", flush=True)
    results = measure(task, texts, settings.metrics)
    (out / RESULTS_FILE).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    shown = ", ".join(f"{name} {results[name]:.2f}" for name in settings.metrics)
    print(f"On {results['items']:,} test sources: {shown}.", flush=True)
    return results


def _check(settings: RunSettings) -> None:
    require_one_of("task", settings.task, [Seq2SeqTask.kind])
    if settings.preset:
        preset = get_preset(settings.preset)
        require(
            preset.task == settings.task,
            "`preset` must be one for this task.",
            preset=settings.preset,
            task=settings.task,
            task_of_preset=preset.task,
        )
    require(
        not (settings.init and settings.model),
        "The section `model` cannot change a model that is loaded.",
        init=settings.init,
        model=settings.model,
    )
    require(
        not (settings.init and settings.tokenizers),
        "The section `tokenizers` cannot change those of a model that is loaded.",
        init=settings.init,
        tokenizers=settings.tokenizers,
    )
    require(
        settings.data.hold_out is None or settings.data.train != [CMUDICT],
        "`data.hold_out` has no meaning for cmudict, whose validation words are fixed.",
        hold_out=settings.data.hold_out,
    )
    if settings.preset:
        parameters = inspect.signature(model_class(settings.preset)).parameters
        allowed = [name for name in parameters if name not in _NOT_SET]
        for name in settings.model:
            require_one_of("model setting", name, allowed)
    _check_activation(settings.model.get("activation"))
    for name in settings.metrics:
        get_metric(name)
    require_one_of("training.metric", settings.training.metric, [*LOSS_METRICS, *settings.metrics])
    DecodingSettings().replace(**settings.decoding)


def _check_activation(name: str | None) -> None:
    try:
        keras.activations.get(name)
    except ValueError as error:
        raise UserError(
            f"`model.activation` must name an activation of Keras. Received: activation={name!r}."
        ) from error


def _check_test(settings: RunSettings, texts: Pairs | None, tokenizer: Tokenizer) -> None:
    """Raises before the training for what would be found to be wrong after it."""
    if texts is None:
        return
    require(
        bool(settings.metrics),
        "Test texts need at least one of `metrics`.",
        metrics=settings.metrics,
    )
    lengths = tokenizer.tokenize(tf.constant(texts.sources)).row_lengths() + 1
    longest = int(tf.reduce_max(lengths))
    require(
        longest <= settings.decoding["max_source_length"],
        "`data.max_source_length` must leave room for every test text and its end.",
        longest=longest,
        max_source_length=settings.decoding["max_source_length"],
    )


def _parameters(task: Seq2SeqTask) -> int:
    return sum(int(np.prod(variable.shape)) for variable in task.backbone.trainable_variables)


def _check_size(task: Seq2SeqTask, most: int | None) -> None:
    if most is not None and _parameters(task) > most:
        raise UserError(
            f"The model must have at most {most:,} parameters. Received: {_parameters(task):,}."
        )


def goal_of(settings: RunSettings) -> str:
    """`"min"` or `"max"` as told, or as the decoded metric has it; else `"auto"`."""
    training = settings.training
    if training.metric_goal == "auto" and training.metric in settings.metrics:
        return get_metric(training.metric).direction
    return training.metric_goal


def _resolved(settings: RunSettings) -> RunSettings:
    """Writes out what is chosen automatically, so that resuming chooses the same."""
    training = settings.training
    strategy = resolve_strategy(training.strategy)
    jit = resolve_jit(training.jit, strategy)
    training = dataclasses.replace(
        training,
        metric_goal=goal_of(settings),
        jit=jit,
        strategy=strategy,
        parts=resolve_parts(training.parts, jit, strategy),
    )
    return settings.replace(training=training)


def _initial_task(settings: RunSettings) -> Seq2SeqTask | None:
    """The trained task to go on from, where there is one."""
    if not settings.init:
        return None
    return Seq2SeqTask.load(task_folder(settings.init), dtype=settings.training.precision)


def _tokenizers(
    settings: RunSettings, train_texts: Pairs, folder: Path, resume: bool
) -> dict[str, Tokenizer]:
    # The target is written last: its description says that both are there.
    complete = folder / "target" / CONFIG_FILE
    if resume and complete.is_file():
        return _load_tokenizers(folder)
    complete.unlink(missing_ok=True)
    options = dict(settings.tokenizers)
    shared = options.pop("shared", False)
    for role in options:
        require_one_of("tokenizers", role, ["shared", "source", "target"])
    if shared:
        texts = [*train_texts.sources, *train_texts.targets]
        source = target = _train_tokenizer(options.get("source"), texts, "source")
    else:
        source = _train_tokenizer(options.get("source"), train_texts.sources, "source")
        target = _train_tokenizer(options.get("target"), train_texts.targets, "target")
    source.save(folder / "source")
    target.save(folder / "target")
    return {"source": source, "target": target}


def _load_tokenizers(folder: Path) -> dict[str, Tokenizer]:
    return {role: load_tokenizer(folder / role) for role in ("source", "target")}


def _train_tokenizer(options: Mapping[str, Any] | None, texts: list[str], role: str) -> Tokenizer:
    require(
        bool(options) and "kind" in options,
        f"A run needs `tokenizers.{role}.kind`.",
        **{role: options},
    )
    options = dict(options)
    return train_tokenizer(options.pop("kind"), texts, **options)


def _examples(settings, texts, tokenizers, initial) -> tuple[RunSettings, PairExamples]:
    """Tokenises the training texts, and sets the longest lengths where none are given."""
    data = settings.data
    limits = {"source": data.max_source_length, "target": data.max_target_length}
    if initial:
        # What the loaded task takes and gives stays as it is, whatever the new texts are.
        limits["source"] = limits["source"] or initial.decoding.max_source_length
        limits["target"] = limits["target"] or initial.decoding.max_length
    examples = PairExamples.from_pairs(
        texts,
        tokenizers["source"],
        tokenizers["target"],
        limits["source"] or _MOST_TOKENS,
        limits["target"] or _MOST_TOKENS,
    )
    longest = dict(zip(examples.sides, examples.lengths.max(axis=0), strict=True))
    for role, limit in limits.items():
        if limit is None:
            # Room for a quarter more than was seen, in steps of 8.
            room = int(np.ceil(longest[role] * 1.25 / 8)) * 8
            limits[role] = min(room, _MOST_TOKENS)
    data = dataclasses.replace(
        data, max_source_length=limits["source"], max_target_length=limits["target"]
    )
    decoding = dict(settings.decoding)
    decoding.setdefault("max_source_length", limits["source"])
    decoding.setdefault("max_length", limits["target"])
    return settings.replace(data=data, decoding=decoding), examples


def _task(
    settings: RunSettings, tokenizers: dict[str, Tokenizer], initial: Seq2SeqTask | None
) -> Seq2SeqTask:
    if initial:
        backbone, decoding = initial.backbone, initial.decoding
    else:
        backbone, decoding = _backbone(settings, tokenizers), DecodingSettings()
    decoding = decoding.replace(**settings.decoding)
    return Seq2SeqTask(backbone, tokenizers["source"], tokenizers["target"], decoding)


def _backbone(settings: RunSettings, tokenizers: dict[str, Tokenizer]) -> keras.Model:
    arguments = {
        "vocabulary_size": tokenizers["source"].vocabulary_size,
        "dtype": settings.training.precision,
    }
    if not settings.tokenizers.get("shared"):
        arguments["target_vocabulary_size"] = tokenizers["target"].vocabulary_size
    family = model_class(settings.preset)
    return family.from_preset(settings.preset, **(arguments | settings.model))


def _validation_set(task: Seq2SeqTask, settings: RunSettings, texts: Pairs) -> ValidationSet:
    examples = PairExamples.from_pairs(
        texts,
        task.source_tokenizer,
        task.target_tokenizer,
        settings.data.max_source_length,
        settings.data.max_target_length,
    )
    if not settings.metrics:
        return ValidationSet(examples)
    sources = list(dict.fromkeys(texts.sources[i] for i in examples.indices.tolist()))
    whole = partial(_decoded_metrics, task, _pairs_of(sources, texts), settings.metrics)
    shown = partial(_samples, task, _pairs_of(sources[:_SAMPLES], texts))
    limit = settings.data.decode_limit
    if limit is None or len(sources) <= limit:
        return ValidationSet(examples, whole, samples=shown)
    part = partial(_decoded_metrics, task, _pairs_of(sources[:limit], texts), settings.metrics)
    return ValidationSet(examples, part, whole, shown)


def _pairs_of(sources: list[str], texts: Pairs) -> Pairs:
    """The pairs of `texts` that have one of `sources`."""
    kept = set(sources)
    rows = [row for row, source in enumerate(texts.sources) if source in kept]
    return Pairs(
        [texts.sources[row] for row in rows], [texts.targets[row] for row in rows], texts.name
    )


def _decoded_metrics(task, pairs, metrics) -> dict[str, float]:
    values = measure(task, pairs, metrics, beams=1)
    return {name: values[name] for name in metrics}


def _samples(task: Seq2SeqTask, pairs: Pairs) -> list[tuple[str, str, str]]:
    sources, references = group_references(pairs)
    found = task.predict_n_best(sources, 1, beams=1)
    predictions = [best[0].text if best else "" for best in found]
    # Alternative references in one line, as dictionaries have them.
    references = [" / ".join(alternatives) for alternatives in references]
    return list(zip(sources, references, predictions, strict=True))


def _report(task, texts, examples, settings) -> None:
    for name, pairs in texts.items():
        print(f"{name:>10}: {len(pairs):,} pairs from {pairs.name}")
    if examples.dropped:
        print(
            f"  left out: {examples.dropped_long:,} pairs longer than "
            f"{settings.data.max_source_length} source or {settings.data.max_target_length} "
            f"target tokens, {examples.dropped_empty:,} without a token"
        )
    plan = plan_epoch(
        examples,
        settings.training.batch_tokens,
        settings.training.seed,
        0,
        static_shapes=settings.training.jit == "on",
    )
    share = padding_share(examples, plan)["total"]
    print(f"   batches: {len(plan):,} an epoch, {share:.1%} of their tokens padding")
    print(
        f"     model: {settings.preset or settings.init}, {_parameters(task):,} parameters, "
        f"{task.source_tokenizer.vocabulary_size:,} source and "
        f"{task.target_tokenizer.vocabulary_size:,} target tokens",
        flush=True,
    )
