"""Base class of runs on texts without targets, one per line."""

from typing import Any, ClassVar

from keras_attn.training.run_texts import hold_out_lines, read_lines
from keras_attn.training.task_runs.base import TaskRun
from keras_attn.validation import require, require_one_of


class LinesRun(TaskRun):
    """Training on texts, one a line; those that are too long are cut into pieces."""

    roles = ("text",)
    items = "lines"
    takes_metrics = False

    measured_tasks: ClassVar[tuple[type, ...]]
    """Classes of the tasks that can be measured."""

    scores: ClassVar[tuple[str, ...]] = ("perplexity", "accuracy")
    """Names of what `scored` returns."""

    def scored(self, task: Any, texts: list[str]) -> dict[str, float]:
        """Measures a task on texts."""
        raise NotImplementedError

    hold_out = staticmethod(hold_out_lines)

    def read_test(self, paths, data):
        return read_lines(paths, data)

    def measure(self, task, texts, metrics, beams=None, perplexity=True, progress=None):
        for name in metrics:
            require_one_of("metrics", name, self.scores)
        require(
            isinstance(task, self.measured_tasks),
            f"The task {self.name!r} is measured with a run or a task folder.",
            task=task.kind,
        )
        require(beams is None, f"The task {self.name!r} is measured without beams.", beams=beams)
        results = {"items": len(texts)} | self.scored(task, texts.texts)
        if progress:
            progress(len(texts))
        return results
