"""Mistakes that are found before the first of an arena's runs is trained."""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from keras_attn.benchmarks.arena.tasks import ARENA_TASKS, Plan, arena_task, base_name
from keras_attn.validation import require, require_one_of, require_positive


def check_plan(plan: Plan) -> None:
    """Raises where a run would fail.

    Args:
        plan: What is to be trained, and on what.

    Raises:
        UserError: See `run_arena`.
    """
    _check_names(plan)
    for task in plan.tasks:
        _check_task(plan, task)
    _check_settings(plan)
    _check_files(plan)
    for task in plan.tasks:
        _check_generator(plan, task)


def _check_names(plan: Plan) -> None:
    from keras_attn.layers.attention.registry import ATTENTION

    for task in plan.tasks:
        require_one_of("task", base_name(task), ARENA_TASKS)
    for mechanism in plan.mechanisms:
        require_one_of("mechanism", mechanism, ATTENTION)
    for names in (plan.tasks, plan.mechanisms):
        require(len(set(names)) == len(names), "Each needs to be named once.", names=names)
    require(
        not plan.probes or len(plan.tasks) == 1,
        "Runs are measured on further tasks where all of them are of one task.",
        tasks=plan.tasks,
        probes=plan.probes,
    )


def _check_task(plan: Plan, task: str) -> None:
    """Checks what one of the tasks asks of the mechanisms, of the files and of a pre-training."""
    from keras_attn.layers.attention.registry import ATTENTION
    from keras_attn.tokenizers.training_library import training_library

    one = arena_task(task)
    for mechanism in plan.mechanisms if one.causal else ():
        kind, _ = ATTENTION[mechanism]
        require(
            getattr(kind, "can_be_causal", True),
            f"The task {task} is causal, and the mechanism is not.",
            mechanism=mechanism,
        )
    for part, option in (("train", "--files"), ("test", "--test-files")):
        require(
            not one.of_files or bool(plan.files.get(part)),
            f"The task {task} reads files: name those to {part} on with {option}.",
            files=plan.files,
        )
    require(
        plan.pretrain_steps is None or one.pretraining is not None,
        f"The task {task} has no pre-training.",
        pretrain_steps=plan.pretrain_steps,
    )
    if one.settings.get("tokenizers", {}).get("text", {}).get("kind") == "byte_level_bpe":
        training_library()


def _check_settings(plan: Plan) -> None:
    from keras_attn.training.run_settings import RunSettings

    if plan.pretrain_steps is not None:
        require_positive(pretrain_steps=plan.pretrain_steps)
    attention = plan.settings.get("attention")
    require(
        attention is None or (isinstance(attention, Mapping) and "name" not in attention),
        "The mechanisms of an arena are those of --mechanisms; other settings may name their "
        "arguments, such as attention.short_convolution=4.",
        attention=attention,
    )
    for task in plan.tasks:
        RunSettings.resolve(*plan.layers(task, plan.mechanisms_of(task)[0]))


def _check_files(plan: Plan) -> None:
    from keras_attn.data.reading.content import is_remote
    from keras_attn.data.reading.paths import expanded

    of_files = [task for task in plan.tasks if arena_task(task).of_files]
    require(len(of_files) < 2, "Only one task can read the files.", tasks=of_files)
    require(
        bool(of_files) or not any(plan.files.values()),
        "No task reads files.",
        tasks=plan.tasks,
        files=plan.files,
    )
    columns = plan.settings.get("data", {}).get("columns")
    for task in of_files:
        needed = arena_task(task).settings["data"].get("columns", ("text", "label"))
        require(
            columns is None or set(needed) <= set(columns),
            f"The task {task} needs a column for each of {', '.join(needed)}.",
            columns=columns,
        )
    for path in expanded([path for paths in plan.files.values() for path in paths]):
        require(is_remote(path) or Path(path).is_file(), f"{path}: no such file.")


def _check_generator(plan: Plan, task: str) -> None:
    """Generates one text of each part, for mistakes that a generator finds when it begins."""
    one = arena_task(task)
    if not one.of_files:
        _generate_some(
            task if ":" in task else one.settings["data"]["train"][0], "train|validation|test"
        )
    for probe in plan.probes:
        require(
            base_name(probe) == base_name(task) and not one.of_files,
            "Runs are measured further on data of their task's generator.",
            task=task,
            probe=probe,
        )
        _generate_some(probe, "test")


def _generate_some(name: str, needed: str) -> None:
    from keras_attn.training.named_sets import SETS_OF_TEXTS, named_set
    from keras_attn.training.run_settings import DataSettings

    empty = re.search(rf"[:,]({needed})=0+(,|$)", name)
    require(empty is None, f"{name} has no texts for {empty and empty[1]}.")
    sizes = dict.fromkeys(("train", "validation", "test"), 1)
    with contextlib.redirect_stdout(None):
        named_set(SETS_OF_TEXTS, [name], sizes)(DataSettings([name]))
