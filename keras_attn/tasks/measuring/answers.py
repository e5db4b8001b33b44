"""Best answers of tasks to different inputs."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_attn.tasks.hypothesis import Hypothesis

Answers = Mapping[Any, Hypothesis]
"""The best answer to each different input."""

_NOTHING = Hypothesis("", -math.inf, -math.inf)


def best_answers(
    task: Any,
    inputs: Sequence[Any],
    beams: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Predicts the best answer to each different input.

    Args:
        task: A task with `predict_n_best`, exported or not.
        inputs: The inputs.
        beams: Width of the beam search; the task's own by default.
        progress: Called with the number of different inputs done after each batch.
    """
    different = list(dict.fromkeys(inputs))
    found = task.predict_n_best(different, 1, beams=beams, progress=progress)
    best = (hypotheses[0] if hypotheses else _NOTHING for hypotheses in found)
    return dict(zip(different, best, strict=True))
