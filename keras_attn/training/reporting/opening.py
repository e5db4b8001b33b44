"""The first questions about a run: is it still learning, how good is it, against what?"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_attn.training.state import better, metric_goal

Rows = Sequence[Mapping[str, str]]
_LITTLE = 0.01
_MEMORIZED = 0.05


class _Validation(NamedTuple):
    step: int
    value: float
    loss: float


class Answer(NamedTuple):
    """An answer to a question about a run.

    Attributes:
        question: The question.
        text: The answer.
        is_good: Whether a reader may be content with it; `None` if that cannot be said.
    """

    question: str
    text: str
    is_good: bool | None


def opening(
    rows: Rows, settings: Mapping[str, Any], results: Mapping[str, Any], errors: Mapping[str, Any]
) -> list[Answer]:
    """Answers the first questions about a run.

    Args:
        rows: The rows of metrics.csv.
        settings: The section `training` of run.yaml, if there is one.
        results: What results.json holds, if there was a test.
        errors: What errors.json holds, if the task's answers were judged.

    Returns:
        The answers.
    """
    metric = (settings.get("metric") or "nll").removeprefix("val_")
    goal = metric_goal(metric, settings.get("metric_goal", "auto"))
    percent = 100 if metric == "accuracy" else 1  # as metrics of texts are
    column = f"val_{metric}"
    values = [
        _Validation(
            int(row["step"]), percent * float(row[column]), float(row.get("val_loss") or "nan")
        )
        for row in rows
        if row.get(column)
    ]
    answers = [_learning(rows, values, metric, goal)]
    if not values:
        return answers
    best_step, best, _ = values[_best(values, goal)]
    text = f"{metric} {_shown(best)} in the validation, {_after(best_step)}"
    if metric in results:
        count = results["items"]
        test = f"{count:,} test example{'s' * (count != 1)}"
        text = f"{metric} {_shown(results[metric])} on {test}; {text}"
    answers.append(Answer("How good is it?", f"{text}.", None))
    return [*answers, _against(values, best, metric, goal, errors)]


def _learning(rows: Rows, values: Sequence[_Validation], metric: str, goal: str) -> Answer:
    question = "Is it still learning?"
    if len(values) < 3:
        return Answer(question, f"Too early to say: {len(values)} validations so far.", None)
    best, last = _best(values, goal), len(values) - 1
    step, value, _ = values[best]
    memorizing = _memorizing(rows)
    if best < last:
        waited = f"{last - best} validation{'s' * (last - best > 1)}"
        text = f"No: {metric} was best {_after(step)}, and {waited} since did not improve it."
        return Answer(question, text + memorizing, last - best < 3 and not memorizing)
    earlier = values[: -max(len(values) // 3, 1)]
    before = earlier[_best(earlier, goal)].value
    change = abs(value - before) / max(abs(before), 1e-9)
    since = (
        f"over the last third of the validations it went from {_shown(before)} to {_shown(value)}"
    )
    if change < _LITTLE:
        return Answer(question, f"Hardly: {metric} is at its best, but {since}." + memorizing, True)
    more = " More updates would probably help."
    return Answer(question, f"Yes: {metric} is at its best; {since}.{more}" + memorizing, False)


def _memorizing(rows: Rows) -> str:
    """A sentence for runs whose validation loss rises while the training loss falls."""
    pairs = [
        (float(row["nll"]), float(row["val_nll"]))
        for row in rows
        if row.get("nll") and row.get("val_nll")
    ]
    if len(pairs) < 3:
        return ""
    lowest = min(range(len(pairs)), key=lambda place: pairs[place][1])
    (then, low), (now, high) = pairs[lowest], pairs[-1]
    if not (high > low * (1 + _MEMORIZED) and now < then):
        return ""
    return (
        f" It memorizes its training data: their loss fell from {_shown(then)} to {_shown(now)} "
        f"nats while that of the validation rose from {_shown(low)} to "
        f"{_shown(high)}. More data, more dropout or fewer updates would help."
    )


def _against(
    values: Sequence[_Validation],
    best: float,
    metric: str,
    goal: str,
    errors: Mapping[str, Any],
) -> Answer:
    step, first, _ = values[0]
    text = f"at the first validation, {_after(step)}, it was {_shown(first)}."
    baseline = errors.get("baseline", {})
    if metric not in baseline.get("metrics", {}):
        return Answer("Against what?", text.capitalize(), None)
    value = baseline["metrics"][metric]
    is_better = better(best, value, goal)
    lead = "" if is_better else "It is no better than no model at all. "
    answer = (
        f"Always answering {baseline['answer']}, gets {metric} {_shown(value)} in the validation"
    )
    return Answer("Against what?", f"{lead}{answer}; {text}", is_better)


def _best(values: Sequence[_Validation], goal: str) -> int:
    """Index of the best value, of equal ones that of the lower loss, as training keeps it."""
    found = 0
    for place, (_, value, loss) in enumerate(values):
        _, best, its_loss = values[found]
        if better(value, best, goal) or (value == best and loss < its_loss):
            found = place
    return found


def _after(step: int) -> str:
    return f"after {step:,} updates" if step else "before the first update"


def _shown(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10000 else f"{value:,.0f}"
