"""Tasks of the arena and settings of their runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ArenaTask(NamedTuple):
    """A task of the arena.

    Attributes:
        settings: Settings of its runs, all but the attention.
        metric: The metric that is compared, in percent.
        of_files: Whether its texts come from files of users.
        causal: Whether mechanisms are causal in it.
        pretraining: Further settings of runs that learn masked tokens of its inputs first; `None`
            where there are none.
    """

    settings: Mapping[str, Any]
    metric: str = "accuracy"
    of_files: bool = False
    causal: bool = False
    pretraining: Mapping[str, Any] | None = None


def _classification(
    data: list[str], length: int, pooling: str = "mean", **tokenizer: Any
) -> dict[str, Any]:
    return {
        "task": "classification",
        "preset": "arena_tiny",
        "model": {"pooling": pooling},
        "data": {"train": data, "max_source_length": length},
        "tokenizers": {"text": tokenizer},
    }


def _text_task(data: list[str], length: int, of_files: bool = False, **tokenizer: Any) -> ArenaTask:
    settings = _classification(data, length, **tokenizer)
    pretraining: dict[str, Any] = {"task": "masked_lm", "data": {"test": []}}
    if "vocabulary_size" in tokenizer:  # room for the mask
        size = tokenizer["vocabulary_size"] + 1
        pretraining["tokenizers"] = {"text": {"vocabulary_size": size}}
    return ArenaTask(settings, of_files=of_files, pretraining=pretraining)


def _retrieval() -> ArenaTask:
    """Pairs of texts of 4,000 bytes, from the columns of Long Range Arena's files."""
    settings = _classification([], 8_003, kind="byte_level_bpe", vocabulary_size=260)
    settings["data"]["columns"] = {"text": 4, "other": 5, "label": 1}
    return ArenaTask(settings, of_files=True)


def _recall(name: str) -> ArenaTask:
    settings = {
        "task": "token_classification",
        "preset": "recall_tiny",
        "data": {"train": [name], "max_source_length": 4_096},
    }
    return ArenaTask(settings, metric="tag_accuracy", causal=True)


# Lengths are those of the longest text with its start and end. A list's first operator says most
# of its value, so ListOps is read from the vector at the start.
ARENA_TASKS = {
    "listops": _text_task(
        ["listops:min_length=500,max_length=2000"], 2_002, pooling="first", kind="symbols"
    ),
    "bytes": _text_task([], 1_002, of_files=True, kind="byte_level_bpe", vocabulary_size=260),
    "retrieval": _retrieval(),
    "pathfinder": _text_task(["pathfinder"], 1_026, kind="characters"),
    **{name: _recall(name) for name in ("recall", "induction", "selective_copying", "duplication")},
}

MECHANISMS = ("dense", "local", "longformer", "linear", "performer", "gated_linear")
CAUSAL_MECHANISMS = ("dense", "local", "linear", "performer", "gated_linear", "delta_rule")


def arena_task(name: str) -> ArenaTask:
    """Finds a task by its name, which may have arguments behind a colon."""
    return ARENA_TASKS[base_name(name)]


def base_name(task: str) -> str:
    """The name without the arguments of generated data."""
    return task.partition(":")[0]


class Plan(NamedTuple):
    """What an arena is asked to train, and on what.

    Attributes:
        tasks: Names of tasks, those of generated data also with arguments.
        mechanisms: Names of mechanisms; empty where each task has its usual ones.
        files: Settings `data` of the task that reads files.
        training: Settings `training` of all runs.
        settings: Further settings of all runs.
        probes: Generated data that finished runs are also measured on.
        pretrain_steps: Updates of a pre-training, or `None`.
    """

    tasks: Sequence[str]
    mechanisms: Sequence[str]
    files: Mapping[str, Sequence[str]]
    training: Mapping[str, Any]
    settings: Mapping[str, Any]
    probes: Sequence[str]
    pretrain_steps: int | None

    def mechanisms_of(self, task: str) -> Sequence[str]:
        """Names of the mechanisms that are trained on a task."""
        usual = CAUSAL_MECHANISMS if arena_task(task).causal else MECHANISMS
        return self.mechanisms or usual

    def layers(self, task: str, mechanism: str) -> list[dict[str, Any]]:
        """Settings of a run: its own, and those that were given, which go before."""
        base = arena_task(task)
        data = dict(base.settings["data"])
        if base.of_files:
            data |= {name: list(paths) for name, paths in self.files.items() if paths}
        elif ":" in task:
            data["train"] = [task]
        own = {"data": data, "training": dict(self.training), "attention": {"name": mechanism}}
        return [{**base.settings, **own}, dict(self.settings)]
