"""A report of a run on one page: curves, results, predictions, settings. Needs the extra `viz`."""

import html
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keras_attn.documents import read_json
from keras_attn.files import write_text
from keras_attn.pages import common_style
from keras_attn.reading import read_table, read_text
from keras_attn.training.reporting.errors import ERRORS_FILE
from keras_attn.training.reporting.opening import opening
from keras_attn.training.reporting.pictures import (
    draw_calibration,
    draw_confusion,
    draw_curves,
    draw_forecasts,
    draw_numbers,
    picture,
)
from keras_attn.training.run_settings import RUN_FILE, read_run_file
from keras_attn.validation import UserError, require

REPORT_FILE = "report.html"
_MOST_CELLS = 12  # labels of a matrix with numbers
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
        picture(draw_curves, rows),
        _forecasts(errors),
        _confusion(errors),
        _calibration(errors),
        _numbers(errors),
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


def _forecasts(errors: Mapping[str, Any]) -> str:
    if not errors.get("forecasts"):
        return ""
    drawn = picture(draw_forecasts, errors["forecasts"])
    return f"<h2>Forecasts of the last validation steps</h2>\n{drawn}"


def _confusion(errors: Mapping[str, Any]) -> str:
    """The matrix of labels and what was predicted for them, and the pairs confused most."""
    parts, labels = [], errors.get("labels") or ()
    has_numbers = 0 < len(labels) <= _MOST_CELLS
    if labels:
        what = f"columns what was predicted, in {errors['items']:,} held-out texts"
        text = f"Rows are the correct labels, {what}."
        matrix = _matrix if has_numbers else partial(picture, draw_confusion)
        parts += ["<h2>Confusion matrix</h2>", f'<p class="faint">{text}</p>']
        parts.append(f"<div>{matrix(labels, errors['counts'])}</div>")
    if (confused := errors.get("confused")) and not has_numbers:
        lines = [(f"{right} → {found}", str(count)) for right, found, count in confused]
        parts += ["<h2>Labels confused most</h2>", _table(("correct → predicted", "times"), lines)]
    return "\n".join(parts)


def _matrix(labels: Sequence[str], counts: Sequence[list[int]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in labels)
    lines = (
        f'<tr><th scope="row">{html.escape(label)}</th>{_counts(numbers, row)}</tr>'
        for row, (label, numbers) in enumerate(zip(labels, counts, strict=True))
    )
    return f'<table class="matrix"><tr><td></td>{head}</tr>{"".join(lines)}</table>'


def _calibration(errors: Mapping[str, Any]) -> str:
    if not errors.get("calibration"):
        return ""
    text = (
        "How often answers are correct, by the probability that they were given; on the line they "
        f"agree. The mean difference is {errors['calibration_error']:.1f}%, of {errors['items']:,} "
        "held-out texts."
    )
    drawn = picture(draw_calibration, errors["calibration"])
    return f'<h2>Calibration</h2>\n<p class="faint">{text}</p>{drawn}'


def _numbers(errors: Mapping[str, Any]) -> str:
    if not errors.get("numbers"):
        return ""
    text = "Predicted numbers of held-out texts over the correct ones; on the line they agree."
    drawn = picture(draw_numbers, errors["names"], errors["numbers"])
    return f'<h2>Predicted and correct</h2>\n<p class="faint">{text}</p>{drawn}'


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
    if "numbers" in errors or "forecasts" in errors:
        what = "windows" if "forecasts" in errors else "texts"
        title = f"<h2>Largest errors of {items:,} held-out {what}</h2>"
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
