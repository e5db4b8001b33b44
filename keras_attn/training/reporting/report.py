"""A report of a run on one page: curves, results, predictions, settings. Needs the extra `viz`."""

import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.documents import read_json
from keras_attn.files import write_text
from keras_attn.pages import common_style
from keras_attn.reading import read_table, read_text
from keras_attn.training.reporting.errors import ERRORS_FILE
from keras_attn.training.reporting.forecasts import FORECASTS_FILE, forecasts_figure
from keras_attn.training.reporting.opening import opening
from keras_attn.training.run_settings import RUN_FILE, read_run_file
from keras_attn.validation import UserError, require

REPORT_FILE = "report.html"
_STYLE = """
body { max-width: 62rem; }
h2 { margin-top: 2rem; }
td.n { text-align: right; }
td.other { color: var(--mark); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.2rem; padding: .8rem 1rem;
  background: var(--panel); border: 1px solid var(--line); border-radius: .35rem; }
dt { font-weight: 600; }
dd { margin: 0; padding-left: .6rem; border-left: 3px solid var(--line); }
dd.good { border-color: var(--accent); }
dd.doubtful { border-color: var(--mark); }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } }
div { overflow-x: auto; }
.matrix th, .matrix td { padding: .25rem .6rem; }
.matrix td.right { background: color-mix(in srgb, var(--highlight) calc(100% * var(--at)),
  var(--paper)); }
.matrix td.wrong { background: color-mix(in srgb, var(--opposite) calc(100% * var(--at)),
  var(--paper)); }
svg { max-width: 100%; height: auto; }
"""
# Readable on light and on dark pages.
_GRAY = "#7f8b97"
_COLORS = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _GRAY
)
_LOSS = {"loss": "training", "val_loss": "validation"}
# Panels of the picture: its label, and the columns that it may show with their names.
_PANELS = (
    ("negative log-likelihood a token (nats)", {"nll": "training", "val_nll": "validation"}),
    ("accuracy of tokens", {"accuracy": "training", "val_accuracy": "validation"}),
    ("mean absolute scaled error", {"val_mase": "MASE"}),
    ("error rate (%)", {"val_per": "PER", "val_wer": "WER", "val_cer": "CER"}),
    ("score", {"val_bleu": "BLEU", "val_chrf": "chrF"}),
    ("learning rate", {"learning_rate": None}),
    ("norm of the gradient", {"gradient_norm": None}),
)


def write_report(run: str | Path) -> Path:
    """Writes report.html into a run's folder: one file that needs no network.

    Args:
        run: The run folder; the run may still be in progress.

    Returns:
        The page.

    Raises:
        UserError: The folder holds no run with a row of metrics, or matplotlib is missing.
    """
    run = Path(run)
    try:
        page = _page(run)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UserError(f"{run}: a file of this run is damaged ({reason}).") from error
    write_text(run / REPORT_FILE, page)
    return run / REPORT_FILE


def _page(run: Path) -> str:
    rows = read_rows(run)
    names = ("summary.json", "results.json", ERRORS_FILE)
    summary, test, errors = (_json(run / name) or {} for name in names)
    parts = [
        _heading(run, rows, summary),
        _opening(run, rows, test, errors),
        "<h2>Curves</h2>",
        _svg(rows),
        _forecasts(run / FORECASTS_FILE),
        _confusion(errors),
        _worst(errors),
        _samples(run / "samples.json"),
        "<h2>Results</h2>",
        _table(("", "value"), _results(rows, summary, test)),
        _speed(_rows(run / "timings.csv")),
        "<h2>Settings</h2>",
        f"<pre>{html.escape(_text(run / RUN_FILE))}</pre>",
    ]
    title = html.escape(run.resolve().name)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{common_style()}{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def read_rows(run: Path) -> list[dict[str, str]]:
    """Reads the rows of a run's metrics.csv, at least one."""
    rows = _rows(run / "metrics.csv")
    require(bool(rows), "A report needs a run with at least one row in metrics.csv.", run=str(run))
    return rows


def draw_curves(rows: Sequence[dict[str, str]], file: Any, kind: str) -> None:
    """Draws the columns of metrics.csv over the updates.

    Args:
        rows: As `csv.DictReader` gives them.
        file: A path or a file that is open for writing.
        kind: `"svg"` or `"png"`.

    Raises:
        UserError: matplotlib is missing.
    """
    with _drawing(_COLORS):
        figure = _figure(rows)
        figure.savefig(file, format=kind, dpi=110, transparent=kind == "svg")


def _drawing(settings: Mapping[str, str]) -> Any:
    """A context with settings of matplotlib; raises UserError if that is missing."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise UserError("Pictures need matplotlib: pip install 'keras_attn[viz]'.") from error
    return rc_context(settings)


def _figure(rows: Sequence[dict[str, str]]) -> Any:
    from matplotlib.figure import Figure

    losses = () if _points(rows, "nll") else (("loss", _LOSS),)
    panels = [
        (label, shown)
        for label, columns in (*losses, *_PANELS)
        if (shown := [(name, text) for name, text in columns.items() if _points(rows, name)])
    ]
    lines = -(-len(panels) // 2)
    figure = Figure(figsize=(10, 3.2 * lines), layout="constrained")
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


def _svg(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    draw_curves(rows, text, "svg")
    return text.getvalue()[text.getvalue().index("<svg") :]  # without the XML head


def _points(rows: Sequence[dict[str, str]], name: str) -> list[tuple[int, float]]:
    return [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]


def _heading(run: Path, rows: list[dict[str, str]], summary: Mapping[str, Any]) -> str:
    last = rows[-1]
    state = f"{int(last['step']):,} updates so far, in epoch {last['epoch']}"
    if summary:
        state = f"{summary['step']:,} updates; kept: {summary['kept']} weights"
        if summary["value"] is not None:
            state += f", {summary['metric']} {summary['value']:.4f}"
    return f"<h1>{html.escape(run.resolve().name)}</h1>\n<p>{html.escape(state)}</p>"


def _results(
    rows: list[dict[str, str]], summary: Mapping[str, Any], test: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """The results of the test, if any, and of the validation of the kept weights."""
    validated = [row for row in rows if any(row[name] for name in row if name.startswith("val_"))]
    if summary.get("kept") == "best":
        best = [row for row in validated if int(row["step"]) == summary.get("best_step")]
        validated = best or validated
    found = [
        (name.replace("val_", "validation "), f"{float(value):.4f}")
        for row in validated[-1:]
        for name, value in row.items()
        if name.startswith("val_") and value
    ]
    plain = {name: value for name, value in test.items() if not isinstance(value, dict | list)}
    return [(f"test {name}", _shown(value)) for name, value in plain.items()] + found


def _opening(
    run: Path, rows: list[dict[str, str]], test: Mapping[str, Any], errors: Mapping[str, Any]
) -> str:
    settings = read_run_file(run / RUN_FILE) if (run / RUN_FILE).is_file() else {}
    kinds = {True: "good", False: "doubtful", None: ""}
    lines = (
        f'<dt>{html.escape(question)}</dt><dd class="{kinds[is_good]}">{html.escape(text)}</dd>'
        for question, text, is_good in opening(rows, settings.get("training", {}), test, errors)
    )
    return f"<dl>{''.join(lines)}</dl>"


def _forecasts(path: Path) -> str:
    forecasts = _json(path)
    if not forecasts:
        return ""
    with _drawing(_COLORS):
        figure = forecasts_figure(forecasts)
    return f"<h2>Forecasts of the last held-out steps</h2>\n{figure}"


def _confusion(errors: Mapping[str, Any]) -> str:
    """The matrix of labels and what was predicted for them, or the pairs confused most."""
    if "counts" in errors:
        labels = errors["labels"]
        head = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in labels)
        lines = (
            f'<tr><th scope="row">{html.escape(label)}</th>{_counts(counts, row)}</tr>'
            for row, (label, counts) in enumerate(zip(labels, errors["counts"], strict=True))
        )
        table = f'<table class="matrix"><tr><td></td>{head}</tr>{"".join(lines)}</table>'
        text = "Rows are the correct labels, columns what was predicted."
        return f'<h2>Confusion matrix</h2>\n<p class="faint">{text}</p><div>{table}</div>'
    if not errors.get("confused"):
        return ""
    lines = [(f"{right} → {found}", str(count)) for right, found, count in errors["confused"]]
    return f"<h2>Labels confused most</h2>\n{_table(('correct → predicted', 'times'), lines)}"


def _counts(counts: list[int], row: int) -> str:
    """The cells of a row, shaded by their fraction of it."""
    total = max(sum(counts), 1)
    return "".join(
        f'<td class="n {"right" if column == row else "wrong"}" style="--at: {count / total:.3f}">'
        f"{count:,}</td>"
        for column, count in enumerate(counts)
    )


def _worst(errors: Mapping[str, Any]) -> str:
    if not errors.get("items"):
        return ""
    wrong, items = errors["wrong"], errors["items"]
    title = f"<h2>Worst errors: {wrong:,} of {items:,} held-out texts are wrong</h2>"
    return f"{title}\n{_texts([row[:3] for row in errors['worst']])}" if wrong else title


def _samples(path: Path) -> str:
    samples = _json(path)
    if not samples:
        return ""
    title = f"<h2>Held-out texts, after {samples[-1]['step']:,} updates</h2>"
    return f"{title}\n{_texts(samples[-1]['texts'])}"


def _texts(rows: Sequence[Sequence[str]]) -> str:
    """A table of sources, references and predictions."""
    lines = []
    for source, reference, prediction in rows:
        kind = "" if prediction in reference.split(" / ") else ' class="other"'
        cells = f"<td>{html.escape(source)}</td><td>{html.escape(reference)}</td>"
        lines.append(f"<tr>{cells}<td{kind}>{html.escape(prediction)}</td></tr>")
    head = "<tr><th>source</th><th>reference</th><th>prediction</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _speed(rows: list[dict[str, str]]) -> str:
    if not rows:
        return ""
    last = rows[-1]
    seconds = float(last["seconds"])
    values = [
        ("minutes of training", f"{seconds / 60:.1f}"),
        ("target tokens", f"{int(last['target_tokens']):,}"),
        ("target tokens a second", f"{int(last['target_tokens']) / max(seconds, 1e-9):,.0f}"),
        ("padding", f"{float(last['padding_share']):.1%}"),
        ("most memory (MB)", f"{float(last['memory_mb']):,.0f}"),
    ]
    return f"<h2>Speed</h2>\n{_table(('', 'value'), values)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = (
        f'<tr><td>{html.escape(name)}</td><td class="n">{html.escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><tr>{first}</tr>{''.join(lines)}</table>"


def _shown(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else str(value)


def _rows(path: Path) -> list[dict[str, str]]:
    return read_table(path) if path.is_file() else []


def _text(path: Path) -> str:
    return read_text(path) if path.is_file() else ""


def _json(path: Path) -> Any:
    return read_json(path) if path.is_file() else None
