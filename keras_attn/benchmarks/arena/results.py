"""The table and the picture of an arena's figures."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_attn.benchmarks.growth import markdown, require_matplotlib
from keras_attn.files import replaced_file

_SWEPT = ("pairs", "length")
_LINES = ("-", "--", ":", "-.")  # with each of ten colors
_MARKERS = "os^Dv*P"


class Sweep(NamedTuple):
    """Tasks that differ in one argument alone.

    Attributes:
        argument: The argument.
        title: Name of the task with the other arguments.
        values: The argument's value by task.
    """

    argument: str
    title: str
    values: Mapping[str, int]


def arena_table(figures: Sequence[Mapping[str, Any]]) -> str:
    """Makes a Markdown table of percent right, seconds and memory by mechanism and task.

    What finished runs were also measured on follows, in percent.

    Seconds of a pre-training come first, as in "90 + 60 s".

    The first row has what the most frequent answer gives, where that is known.

    Args:
        figures: The results of `run_arena`.
    """
    tasks = list(dict.fromkeys(figure["task"] for figure in figures))
    probes = list(dict.fromkeys(one for figure in figures for one in figure.get("probes", ())))
    rows = [["mechanism", *tasks, *probes]]
    majority = {f["task"]: f["majority"] for f in figures if f.get("majority") is not None}
    if majority:
        rows.append(
            ["most frequent", *(f"{majority[t]:.1f}" if t in majority else "" for t in tasks)]
        )
    for name in dict.fromkeys(figure["mechanism"] for figure in figures):
        own = {figure["task"]: figure for figure in figures if figure["mechanism"] == name}
        values = own.get(tasks[0], {}).get("probes", {})
        probed = [f"{values[probe]:.1f}" if probe in values else "" for probe in probes]
        rows.append([name, *(_cell(own.get(task)) for task in tasks), *probed])
    return markdown(rows)


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    if "error" in figure:
        return "failed"
    before = f"{figure['pretraining']['seconds']:.0f} + " if "pretraining" in figure else ""
    seconds = f"{before}{figure['seconds']:.0f} s"
    return f"{figure['value']:.1f}, {seconds}, {figure['memory_mb']:,.0f} MB"


def draw_arena(figures: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draws percent right over seconds and memory by task, and over the number of pairs or length.

    Args:
        figures: The results of `run_arena`.
        path: PNG file to write.

    Raises:
        UserError: matplotlib is missing.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    measured = [figure for figure in figures if "error" not in figure]
    names = dict.fromkeys(figure["mechanism"] for figure in measured)
    looks = {}
    for number, name in enumerate(names):
        line, marker = _LINES[number // 10 % len(_LINES)], _MARKERS[number % len(_MARKERS)]
        color = f"C{number % 10}"
        looks[name] = {"color": color, "marker": marker, "linestyle": line, "label": name}
    sweeps = sweeps_of(measured)
    in_sweeps = {task for sweep in sweeps for task in sweep.values}
    tasks = dict.fromkeys(f["task"] for f in measured if f["task"] not in in_sweeps)
    panels: list[Any] = [
        (task, _draw_task, (key, label)) for key, label in _COSTS for task in tasks
    ]
    panels += [(sweep.title, _draw_sweep, (sweep,)) for sweep in sweeps]
    columns = max(len(tasks), len(sweeps), 1)
    rows = max(-(-len(panels) // columns), 1)
    height = max(3.2 * rows, 0.2 * len(names) + 0.4)  # as long as the legend
    figure = Figure(figsize=(3.6 * columns + 2.2, height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, (title, draw, arguments) in zip(axes, panels, strict=False):
        draw(axis, title, measured, looks, *arguments)
        spaced = re.sub(r"([:,])(?=\S)", r"\1 ", title)
        lines = textwrap.wrap(spaced, _TITLE, break_long_words=False)
        axis.set_title("\n".join(lines), fontsize="medium")
        axis.set(ylabel="% right")
        axis.grid(alpha=0.3)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    handles: dict[str, Any] = {}
    for axis in axes:
        handles |= {handle.get_label(): handle for handle in axis.get_legend_handles_labels()[0]}
    place = "outside right center"
    figure.legend(handles.values(), handles.keys(), loc=place, fontsize="small")
    with replaced_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


_TITLE = 36  # characters of a line
_GUESS = {"color": "gray", "linewidth": 1, "linestyle": (0, (1, 1))}
_COSTS = (("seconds", "seconds of training"), ("memory_mb", "memory, MB"))


def _draw_task(axis: Any, task: str, measured: list, looks: Mapping, key: str, label: str) -> None:
    """A point for each mechanism, and a line at the most frequent answer."""
    own = [one for one in measured if one["task"] == task]
    for one in own:
        axis.plot(one[key], one["value"], **looks[one["mechanism"]] | {"linestyle": ""})
    if own[0]["majority"] is not None:
        axis.axhline(own[0]["majority"], **_GUESS, label="the most frequent answer")
    axis.set(xlabel=label)


def _draw_sweep(axis: Any, title: str, measured: list, looks: Mapping, sweep: Sweep) -> None:
    """A line for each mechanism, over the argument."""
    for name, look in looks.items():
        found = [_values(one) for one in measured if one["mechanism"] == name]
        points = sorted(
            (sweep.values[task], value)
            for of_tasks in found
            for task, value in of_tasks.items()
            if task in sweep.values
        )
        if points:
            axis.plot(*zip(*points, strict=True), **look)
    places = sorted(sweep.values.values())
    guesses = [(value, _guess(task)) for task, value in sweep.values.items()]
    if all(guess for _, guess in guesses):
        axis.plot(*zip(*sorted(guesses), strict=True), **_GUESS, label="a guess among the values")
    axis.set(xlabel=sweep.argument, xscale="log", ylim=(0, 103))
    axis.set_xticks(places, [str(place) for place in places])
    axis.set_xticks([], minor=True)


def _values(figure: Mapping[str, Any]) -> dict[str, float]:
    """What a run reached by task: on its own, and on those that it was also measured on."""
    return {figure["task"]: figure["value"]} | figure["probes"]


def _name_and_arguments(task: str) -> tuple[str, dict[str, str]]:
    name, _, given = task.partition(":")
    return name, dict(part.partition("=")[::2] for part in given.split(",") if part)


def _guess(task: str) -> float | None:
    """Percent right where one of the values in a text of `recall` is guessed."""
    name, given = _name_and_arguments(task)
    return 100 / int(given["pairs"]) if name == "recall" and "pairs" in given else None


def sweeps_of(figures: Sequence[Mapping[str, Any]]) -> list[Sweep]:
    """Finds the tasks that differ in their number of pairs, or in their length, alone.

    Args:
        figures: The results of `run_arena`, without errors.
    """
    tasks = dict.fromkeys(task for figure in figures for task in _values(figure))
    found = []
    for argument in _SWEPT:
        by_title: dict[str, dict[str, int]] = {}
        for task in tasks:
            name, others = _name_and_arguments(task)
            value = others.pop(argument, None)
            if value is not None:
                title = ", ".join([name, *(f"{key} {one}" for key, one in others.items())])
                by_title.setdefault(title, {})[task] = int(value)
        found += [Sweep(argument, *one) for one in by_title.items() if len(one[1]) > 1]
    return found
