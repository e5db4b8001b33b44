"""Lines that describe a run before its first update."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn.data import Examples
from keras_attn.models import Bert, SequenceClassifier
from keras_attn.tasks import LabelTask, Task
from keras_attn.training.distillation_settings import DistillationSettings
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.settings import TrainingSettings

_SHOWN_LABELS = 10
_FEW_UPDATES = 50
_MOST_COMPARED = 1_000_000


def count_parameters(weights: Sequence[keras.Variable]) -> int:
    """Counts the numbers in weights."""
    return sum(int(np.prod(weight.shape)) for weight in weights)


def describe_overlap(texts: Mapping[str, Any]) -> None:
    """Prints how many texts for validation and test are training texts as well.

    More than a million training texts are not compared: `keras-attn data` does that.

    Args:
        texts: The texts of a run by part.
    """
    parts = {name: sources for name, part in texts.items() if (sources := _sources(part))}
    train = parts.pop("train", ())
    if len(train) > _MOST_COMPARED:
        return
    common = set(itertools.chain.from_iterable(parts.values())).intersection(train)
    for name, sources in parts.items():
        if count := sum(source in common for source in sources):
            print(
                f"   warning: {count:,} of {len(sources):,} rows of {name} have a text of train: "
                "they do not measure what new texts get"
            )


def _sources(part: Any) -> Sequence[str]:
    """The texts of a part of the data, where it has one in each row."""
    found = getattr(part, "sources", None) or getattr(part, "texts", None) or ()
    return found if len(found) and isinstance(found[0], str) else ()


def describe_run(
    settings: RunSettings,
    texts: Mapping[str, Any],
    examples: Examples,
    batches: int,
    padding: float,
    task: Task,
    held_out: Examples | None = None,
) -> None:
    """Prints the texts, the batches and the model of a run.

    Args:
        settings: Its settings, complete.
        texts: Its texts by part.
        examples: Its training examples.
        batches: Number of batches of an epoch.
        padding: Fraction of their tokens that is padding.
        task: Its task.
        held_out: Its examples for validation.
    """
    for name, part in texts.items():
        print(f"{name:>10}: {len(part):,} {examples.kind}s from {part.name}")
    if examples.dropped or (held_out and held_out.dropped):
        source = settings.data.max_source_length
        limits = {"source": source, "text": source, "target": settings.data.max_target_length}
        longest = " or ".join(f"{limits[side]} {side}" for side in examples.sides)
        print(
            f"  left out: {examples.dropped_long:,} {examples.kind}s longer than {longest} tokens, "
            f"{examples.dropped_empty:,} without a token"
            f"{_for_validation(held_out and held_out.dropped)}"
        )
    if examples.truncated or (held_out and held_out.truncated):
        print(
            f" truncated: {examples.truncated:,} {examples.kind}s to {_kept(settings, texts)}"
            f"{_for_validation(held_out and held_out.truncated)}"
        )
    for note in examples.notes:
        print(f"    unused: {note}")
    of_padding = f", {padding:.1%} of their tokens padding" if padding else ""
    print(f"   batches: {batches:,} an epoch{of_padding}")
    print(f"  training: {_end_of(settings.training, batches)}")
    updates = settings.training.total_steps(batches)
    steps = updates * settings.training.accumulate_steps
    if steps < batches:
        print(
            f"   warning: {1 - steps / batches:.0%} of the {examples.kind}s are never read: "
            "--epochs or --steps set another end"
        )
    if settings.training.steps is None and updates < _FEW_UPDATES:
        print(
            f"   warning: {updates:,} updates learn little: without --epochs there are as many as "
            "few data need"
        )
    sizes = " and ".join(
        f"{tokenizer.vocabulary_size:,} {role}" for role, tokenizer in task.tokenizers.items()
    )
    sizes = f", {sizes} tokens" if sizes else ""
    parameters = count_parameters(task.backbone.trainable_variables)
    name = settings.preset or settings.init
    print(f"     model: {name}, {parameters:,} parameters{sizes}", flush=True)
    if settings.distillation:
        print(f"  teachers: {_teachers(settings.distillation)}", flush=True)


def _teachers(how: DistillationSettings) -> str:
    soft = f"soft targets of weight {how.weight:g}"
    if how.temperature is not None:
        soft += f" at temperature {how.temperature:g}"
    kinds = [soft] if how.is_soft else []
    kinds += [f"generated texts {how.targets} the targets"] if how.is_generated else []
    return f"{', '.join(how.teachers)}: {'; '.join(kinds)}"


def _for_validation(count: int | None) -> str:
    return f", and {count:,} for validation" if count else ""


def describe_rules(applied: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the settings that follow from the amount of data.

    Args:
        applied: Settings by condition.
    """
    for condition, names in applied.items():
        shown = ", ".join(f"{name}={value}" for name, value in names.items())
        print(f" by amount: {condition}: {shown}", flush=True)


def _kept(settings: RunSettings, texts: Mapping[str, Any]) -> str:
    """What is read of a text that is too long."""
    longest = settings.data.max_source_length
    if getattr(texts["train"], "of_two", False):
        return f"{longest} tokens, shared by both texts"
    return f"their first {longest} tokens"


def _end_of(training: TrainingSettings, batches: int) -> str:
    """When a training ends."""
    steps = training.total_steps(batches)
    passes = steps * training.accumulate_steps / batches
    text = (
        f"{steps:,} updates, {passes:,.0f} epochs"
        if passes >= 100
        else f"{steps:,} updates, {passes:.3g} epochs"
    )
    if training.max_minutes is not None:
        text += f", or {training.max_minutes:g} min"
    if training.patience and training.min_steps < steps:
        since = f" after update {training.min_steps:,}" if training.min_steps else ""
        text += f"; it ends{since} if {training.patience} validations do not improve"
        text += f" {training.metric}"
    return text


def describe_new_head(task: Task, source_task: Task) -> None:
    """Prints which weights are new in a run that starts from another task, or other labels.

    Args:
        task: The task of the run.
        source_task: The task that it starts from.
    """
    new = _new_weights(task.backbone, source_task.backbone)
    parts = list(dict.fromkeys(weight.path.partition("/")[0] for weight in new))
    trained = f"new and untrained: {', '.join(parts)}" if parts else "without weights of its own"
    kept = "encoder and vocabulary are those" if task.tokenizers else "the encoder is that"
    labels = ""
    if task.kind == source_task.kind and isinstance(source_task, LabelTask):
        shown = source_task.labels[:_SHOWN_LABELS]
        more = " …" if len(source_task.labels) > len(shown) else ""
        labels = f", whose labels are others: {', '.join(shown)}{more}"
    print(f"      head: {trained}; {kept} of the {source_task.kind} task{labels}", flush=True)
    model = task.backbone
    is_of_texts = isinstance(model, SequenceClassifier) and isinstance(model.encoder, Bert)
    if is_of_texts and model.pooling != "pooler" and not model.get_config().get("transform"):
        way = "--set model.pooling=pooler, which classifiers of Hugging Face are"
        print(f"            to go back to Hugging Face: {way}", flush=True)


def _new_weights(model: keras.Model, source: keras.Model) -> list[keras.Variable]:
    """The weights of a model that are not another's, nor copies of them."""
    old = {id(weight) for weight in source.weights}
    # An encoder is copied that gets a pooler, and what a head begins with.
    copied = {id(weight) for weight in getattr(getattr(model, "encoder", None), "weights", ())}
    alike: dict[tuple, list] = {}
    for weight in source.weights:
        alike.setdefault(tuple(weight.shape), []).append(weight)

    def is_kept(weight: keras.Variable) -> bool:
        if id(weight) in old:
            return True
        may_be = id(weight) in copied or weight.path.startswith("transform/")
        others = alike.get(tuple(weight.shape), ()) if may_be else ()
        return any(np.array_equal(weight, one) for one in others)

    return [weight for weight in model.weights if not is_kept(weight)]
