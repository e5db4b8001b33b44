"""Draws a run's learning curve from its metrics.csv.

usage: python docs/draw_learning_curve.py RUN PICTURE.png      (needs the extra `viz`)
"""

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(run: Path, picture: Path) -> None:
    """Draws loss per token, and the decoded metrics where the run has some, over the updates."""
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    decoded = [name for name in ("val_per", "val_wer", "val_bleu") if name in rows[0]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, label in (("nll", "training"), ("val_nll", "held-out words")):
        points = [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]
        left.plot(*zip(*points, strict=True), label=label)
    left.set(xlabel="updates", ylabel="negative log-likelihood a token (nats)")
    left.set_ylim(bottom=0)
    left.legend(frameon=False)
    for name in decoded:
        points = [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]
        right.plot(*zip(*points, strict=True), marker="o", label=name.removeprefix("val_").upper())
        right.annotate(
            f"{points[-1][1]:.1f}", points[-1], xytext=(0, 6), textcoords="offset points"
        )
    right.set(xlabel="updates", ylabel="% on held-out words, greedy")
    right.set_ylim(bottom=0)
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
