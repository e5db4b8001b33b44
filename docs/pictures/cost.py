"""Draws time and memory of the mechanisms by length, from the tables of measurements.

`python docs/pictures/cost.py docs/pages/images`
"""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from style import LOOK

PAGE = Path(__file__).parents[1] / "pages" / "explanation" / "attention" / "README.md"
TITLES = ("512 features in 8 heads, an Intel Xeon", "later ones, an AMD EPYC")
LEFT_OUT = re.compile("synthesizer|additive|luong|intra|compressive")  # as dense, or off the scale
_ROW = re.compile(r"^\| `(\w+)`[^|]*\|(.*)\|$", re.MULTILINE)
_CELL = re.compile(r"([\d.]+) (m?s), ([\d.]+) GB")
LENGTHS = (512, 2048, 8192, 32768)
MARKERS = "os^Dv*P"


def tables() -> list[str]:
    """The tables with a column for each length, of the section of measurements."""
    section = PAGE.read_text().split("## Measured")[1].split("\n## ")[0]
    return [part for part in section.split("\n\n") if part.startswith("| mechanism")]


def measured(table: str) -> dict[str, list[tuple[int, float, float]]]:
    """Length, seconds and gigabytes of each measurement, by mechanism."""
    heads = [cell.strip().replace(",", "") for cell in table.split("\n")[0].split("|")[2:]]
    lengths = [int(head) for head in heads if head.isdigit()]
    found = {}
    for name, cells in _ROW.findall(table):
        found[name] = [
            (length, float(cell[1]) / (1000 if cell[2] == "ms" else 1), float(cell[3]))
            for length, text in zip(lengths, cells.split("|"), strict=False)
            if (cell := _CELL.search(text))
        ]
    return found


def draw(folder: Path) -> None:
    """Writes the picture: a row for each table."""
    figure, rows = plt.subplots(2, 2, figsize=(10, 7.6), sharex=True, sharey="col")
    for axes, title, table in zip(rows, TITLES, tables(), strict=True):
        shown = {
            name: points for name, points in measured(table).items() if not LEFT_OUT.search(name)
        }
        for number, (name, points) in enumerate(shown.items()):
            lengths, *costs = zip(*points, strict=True)
            for axis, cost in zip(axes, costs, strict=True):
                look = {"marker": MARKERS[number % len(MARKERS)], "markersize": 5, "label": name}
                axis.loglog(lengths, cost, **look)
        for axis, label in zip(
            axes, ("seconds, forward and backward", "peak memory (GB)"), strict=True
        ):
            axis.set(ylabel=label, title=title)
            axis.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], minor=False)
            axis.minorticks_off()
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        axes[1].legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    for axis in rows[-1]:
        axis.set(xlabel="positions")
    figure.tight_layout()
    figure.savefig(folder / "cost.png")


if __name__ == "__main__":
    with plt.rc_context(LOOK):
        draw(Path(sys.argv[1]))
