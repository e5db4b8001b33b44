"""Runs of tasks from text to numbers."""

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from keras_attn.data import Pairs
from keras_attn.evaluation.numbers import LOWER_IS_BETTER, NUMBERS
from keras_attn.tasks import RegressionTask
from keras_attn.tasks.measuring.numbers import number_scores, numbers_of
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.task_runs.heads import HeadRun
from keras_attn.training.task_runs.soft_targets import VALUES
from keras_attn.validation import UserError, require


class RegressionRun(HeadRun):
    """Trains an encoder and a head on texts with numbers, tuples in the pairs.

    The numbers are standardized by mean and deviation of the training texts.
    """

    task_class = RegressionTask
    columns = ("text", "number")
    named_columns = ("other",)
    has_several = True
    known_data: ClassVar = {}
    known_metrics = tuple(NUMBERS)
    soft_targets = VALUES
    no_answer = ()
    items = "texts"

    def check(self, settings):
        super().check(settings)
        self.refuse_consistency(settings)
        require(
            settings.training.label_smoothing == 0,
            "Numbers are not smoothed: `training.label_smoothing` must be 0.",
            label_smoothing=settings.training.label_smoothing,
        )

    def default_metrics(self, data):
        return ["mae", "rmse", "r2", "pearson", "spearman"]

    def goal(self, metric):
        super().goal(metric)
        return "min" if metric in LOWER_IS_BETTER else "max"

    def head_of(self, texts, task):
        if task:
            return task.names, task.means, task.deviations
        numbers = _numbers_of(texts)
        count = numbers.shape[1]
        names = [f"number {place}" for place in range(1, count + 1)] if count > 1 else ["number"]
        deviations = numbers.std(axis=0)
        require(
            bool(deviations.all()),
            f"The numbers of {texts.name} must not all be equal.",
            mean=numbers.mean(axis=0).tolist(),
        )
        return names, numbers.mean(axis=0).tolist(), deviations.tolist()

    def ask(self, teacher, inputs, beams):
        rows = teacher.predict(inputs).reshape(len(inputs), -1)
        return list(map(tuple, rows.tolist()))

    def check_teacher(self, task, teacher):
        super().check_teacher(task, teacher)
        require(
            teacher.names == task.names,
            "Teacher and student must have the same numbers.",
            teacher=teacher.names,
            student=task.names,
        )

    def teacher_outputs(self, task, teacher):
        # Each standardizes numbers in its own way.
        scales = np.divide(teacher.deviations, task.deviations)
        shifts = np.subtract(teacher.means, task.means) / task.deviations

        def outputs(inputs, _):
            numbers = teacher.backbone(inputs, training=False)
            numbers = numbers if numbers.dtype == tf.float64 else tf.cast(numbers, tf.float32)
            return numbers * scales.astype(numbers.dtype.name) + shifts.astype(numbers.dtype.name)

        return outputs

    def targets(self, texts, task, held_out):
        names, means, deviations = self.head_of(texts, task)
        numbers = _numbers_of(texts)
        require(
            numbers.shape[1] == len(names),
            f"The texts of {texts.name} must have as many numbers as those of the training.",
            numbers=numbers.shape[1],
            training=len(names),
        )
        return ((numbers - means) / deviations).astype(np.float32)

    def needs_new_head(self, source_task, texts):
        columns = _numbers_of(texts).shape[1]
        return super().needs_new_head(source_task, texts) or len(source_task.names) != columns

    def described(self, texts):
        rows = zip(*self.head_of(texts, None), _numbers_of(texts).T, strict=True)
        return [
            f"   numbers: {name} from {column.min():g} to {column.max():g}, mean {mean:g}, "
            f"standard deviation {deviation:g}"
            for name, mean, deviation, column in rows
        ]

    def answers(self, task, texts, beams=None, progress=None):
        self.require_read(task, texts)
        return numbers_of(task, texts, progress)

    def scores(self, texts, answers, metrics):
        return number_scores(texts, answers, metrics)

    def judged(self, texts, answers):
        """Judges texts by the mean absolute difference of their numbers."""
        judged = []
        for text, right in zip(texts.sources, texts.targets, strict=True):
            error = float(np.mean(np.abs(answers[text] - right)))
            judged.append(Judged(self.shown(text), _shown(right), _shown(answers[text]), error))
        return judged

    def baseline(self, texts, metrics, task=None):
        """Measures the mean as the answer to everything."""
        mean = _numbers_of(texts).mean(axis=0)
        values = number_scores(texts, dict.fromkeys(texts.sources, mean), metrics)
        return Baseline(f"{_shown(mean)}, the mean", {name: values[name] for name in metrics})

    def charts(self, task, texts, answers):
        """The correct and the predicted numbers."""
        found = np.array([answers[text] for text in texts.sources], float)
        return {"names": task.names, "numbers": np.stack([_numbers_of(texts), found]).tolist()}


def _numbers_of(texts: Pairs) -> np.ndarray:
    """The numbers of all texts, (texts, numbers) float64."""
    widths = {len(row) for row in texts.targets}
    if len(widths) > 1:
        raise UserError(
            f"All texts of {texts.name} must have as many numbers. Received: {sorted(widths)[:5]}."
        )
    return np.array(texts.targets, float)


def _shown(numbers: Any) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
