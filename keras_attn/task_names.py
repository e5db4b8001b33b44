"""Names of the tasks, the same in classes, files, recipes, run.yaml and `--task`."""

from typing import Any

from keras_attn.renamed import renamed, warn_of_old_name

TASK_NAMES = (
    "seq2seq",
    "classification",
    "multi_label_classification",
    "regression",
    "rank",
    "question_answering",
    "image_classification",
    "token_classification",
    "embedding",
    "causal_lm",
    "masked_lm",
    "span_corruption",
    "forecast",
)

RENAMED_TASKS = {
    "classify": "classification",
    "classify_images": "image_classification",
    "tag": "token_classification",
    "embed": "embedding",
    "lm": "causal_lm",
    "mlm": "masked_lm",
}
"""Current names by those of the previous version."""


def current_task_name(name: Any, warns: bool = False) -> Any:
    """Returns the current name of a task.

    Args:
        name: A name of this version or of the previous one; anything else is returned as it is.
        warns: Whether a name of the previous version issues a `DeprecationWarning`; files of that
            version load without one.
    """
    new = RENAMED_TASKS.get(name, name) if isinstance(name, str) else name
    if warns and new != name:
        warn_of_old_name(renamed(f"The task `{name}`", f"`{new}`"))
    return new
