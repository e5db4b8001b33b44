"""Pictures of a run: curves, confusion of labels, calibration, numbers. They need matplotlib."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_attn.validation import UserError

# Readable on light and on dark pages.
_GRAY = "#7f8b97"
_COLORS = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _GRAY
)
_RIGHT, _WRONG = (0.25, 0.53, 0.84), (0.85, 0.45, 0.2)
# Panels of the curves: a label, and the columns that it may show with their names.
_PANELS = (
    ("negative log-likelihood (nats)", {"nll": "training", "val_nll": "validation"}),
    ("accuracy", {"accuracy": "training", "val_accuracy": "validation"}),
    ("mean absolute scaled error", {"val_mase": "MASE"}),
    ("error rate (%)", {"val_per": "PER", "val_wer": "WER", "val_cer": "CER"}),
    ("score", {"val_bleu": "BLEU", "val_chrf": "chrF"}),
    (
        "labels (%)",
        {
            "val_micro_f1": "micro F1",
            "val_macro_f1": "macro F1",
            "val_weighted_f1": "weighted F1",
            "val_exact_match": "exact match",
        },
    ),
    ("error", {"val_mae": "mean absolute", "val_rmse": "root mean squared"}),
    ("learning rate", {"learning_rate": None}),
    ("norm of the gradient", {"gradient_norm": None}),
)
_LOSS = ("loss", {"loss": "training", "val_loss": "validation"})  # of tasks without the first
_LONGEST_LABEL = 18  # characters
_LETTERS_A_LINE = 84  # under a picture as wide as a page


def save_picture(draw: Callable[..., Any], *data: Any, file: Any, kind: str) -> None:
    """Draws a picture and writes it.

    Args:
        draw: A function of this module.
        *data: Its arguments.
        file: A path or a file that is open for writing.
        kind: `"svg"` or `"png"`.

    Raises:
        UserError: matplotlib is missing.
    """
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise UserError("Pictures need matplotlib: pip install 'keras_attn[viz]'.") from error
    with rc_context(_COLORS):
        draw(*data).savefig(file, format=kind, dpi=110, transparent=kind == "svg")


def picture(draw: Callable[..., Any], *data: Any) -> str:
    """Draws a picture as SVG for a page."""
    text = io.StringIO()
    save_picture(draw, *data, file=text, kind="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]  # without the XML head


def draw_curves(rows: Sequence[Mapping[str, str]]) -> Any:
    """Draws the columns of metrics.csv over the updates.

    Args:
        rows: As `csv.DictReader` gives them.
    """
    losses = () if _points(rows, "nll") else (_LOSS,)
    panels = [
        (label, shown)
        for label, columns in (*losses, *_PANELS)
        if (shown := [(name, text) for name, text in columns.items() if _points(rows, name)])
    ]
    lines = -(-len(panels) // 2)
    figure = _figure(figsize=(10, 3.2 * lines))
    for place, (label, shown) in enumerate(panels):
        axes = figure.add_subplot(lines, 2, place + 1)
        for name, text in shown:
            points = _points(rows, name)
            axes.plot(*zip(*points, strict=True), label=text, marker="." * (len(points) < 30))
        axes.set(xlabel="updates", ylabel=label)
        if "nll" in dict(shown):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        if shown[0][1]:
            axes.legend(frameon=False)
    return figure


def draw_forecasts(forecasts: Sequence[Mapping[str, Any]]) -> Any:
    """Draws forecasts: the past and what came as lines, quantiles as bands.

    Args:
        forecasts: From `drawn_forecast`.
    """
    shown = [(one, target) for one in forecasts for target in one["targets"]]
    figure = _figure(figsize=(10, 3.2 * len(shown)))
    for place, (one, target) in enumerate(shown, 1):
        axes = figure.add_subplot(len(shown), 1, place)
        past, actual = (np.array(target[name], float) for name in ("past", "actual"))
        quantiles, levels = np.array(target["quantiles"], float), one["levels"]
        ahead = np.arange(len(past), len(past) + len(actual))
        axes.plot(np.arange(len(past) + len(actual)), [*past, *actual], color=_GRAY, label="data")
        for low in range(len(levels) // 2):
            high = len(levels) - 1 - low
            label = f"{levels[low]:g} to {levels[high]:g}" if low == 0 else None
            band = quantiles[:, low], quantiles[:, high]
            axes.fill_between(ahead, *band, alpha=0.16, color=_RIGHT, lw=0, label=label)
        axes.plot(ahead, quantiles[:, levels.index(0.5)], color=_RIGHT, label="median")
        count = min(7, max(2, _LETTERS_A_LINE // (max(map(len, one["times"])) + 3)))
        ticks = np.unique(np.linspace(0, len(one["times"]) - 1, count).astype(int))
        axes.set_xticks(ticks, [one["times"][tick] for tick in ticks])
        title = " ".join(filter(None, (one["series"], target["name"])))
        axes.set_title(title, loc="left", fontsize=10, parse_math=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, loc="upper left", ncols=3)
    return figure


def draw_confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Any:
    """Draws a confusion matrix as a map.

    Args:
        labels: The labels.
        counts: How often each was answered by each, correct labels as rows.
    """
    matrix = np.array(counts, float)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    cells = np.empty((*matrix.shape, 4))
    cells[..., :3] = np.where(np.eye(len(labels), dtype=bool)[..., None], _RIGHT, _WRONG)
    cells[..., 3] = np.sqrt(shares)  # so that rare confusions are seen
    size = 2.5 + 0.19 * len(labels)
    figure = _figure(figsize=(size, size))
    axes = figure.add_subplot()
    axes.imshow(cells, interpolation="nearest")
    names = [
        name if len(name) <= _LONGEST_LABEL else f"{name[:_LONGEST_LABEL]}…" for name in labels
    ]
    places = range(len(labels))
    axes.set_xticks(places, names, rotation=90, fontsize=7, parse_math=False)
    axes.set_yticks(places, names, fontsize=7, parse_math=False)
    axes.set(xlabel="predicted", ylabel="correct")
    axes.set_xticks([place - 0.5 for place in places], minor=True)
    axes.set_yticks([place - 0.5 for place in places], minor=True)
    axes.grid(which="minor", alpha=0.25)
    axes.tick_params(which="both", length=0)
    return figure


def draw_calibration(bins: Sequence[tuple[float, float, int]]) -> Any:
    """Draws how often answers are correct by their probability.

    Args:
        bins: Mean probability, accuracy and number of answers of groups of answers.
    """
    probabilities, accuracies, counts = np.array(bins).T
    figure = _figure(figsize=(5, 4.2))
    above, below = figure.subplots(2, sharex=True, height_ratios=(4, 1))
    above.plot([0, 1], [0, 1], "--", color=_GRAY)
    above.plot(probabilities, accuracies, marker="o", color=_RIGHT)
    above.set(ylabel="fraction correct", xlim=(0, 1), ylim=(0, 1.02))
    below.bar(probabilities, counts, width=0.04, color=_RIGHT)
    below.set(xlabel="probability of the answer", ylabel="answers")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure


def draw_numbers(names: Sequence[str], numbers: Sequence[Sequence[Sequence[float]]]) -> Any:
    """Draws predicted numbers over the correct ones.

    Args:
        names: What the numbers are called.
        numbers: The correct and the predicted ones, (2, texts, numbers).
    """
    columns = np.moveaxis(np.array(numbers, float), 2, 0)  # (numbers, 2, texts)
    figure = _figure(figsize=(min(4.6 * len(names), 10), 4.2))
    for axes, name, (correct, predicted) in zip(
        figure.subplots(1, len(names), squeeze=False)[0], names, columns, strict=True
    ):
        ends = [min(correct.min(), predicted.min()), max(correct.max(), predicted.max())]
        axes.plot(ends, ends, "--", color=_GRAY)
        axes.scatter(correct, predicted, s=12, alpha=0.5, color=_RIGHT)
        axes.set_title(name, fontsize=10, parse_math=False)
        axes.set(xlabel="correct", ylabel="predicted")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure


def _figure(**options: Any) -> Any:
    from matplotlib.figure import Figure

    return Figure(layout="constrained", **options)


def _points(rows: Sequence[dict[str, str]], name: str) -> list[tuple[int, float]]:
    return [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]
