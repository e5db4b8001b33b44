"""Draws time and memory of the mechanisms by length, from the table of measurements.

`python docs/pictures/cost.py docs/pages/images`
"""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from style import LOOK

TABLE = Path(__file__).parents[1] / "pages" / "explanation" / "attention" / "README.md"
SHOWN = ("dense", "flash", "local", "global_local", "linear", "lsh", "recurrent_memory", "simple")
_ROW = re.compile(r"^\| `(\w+)`[^|]*\|(.*)\|$", re.MULTILINE)
_CELL = re.compile(r"([\d.]+) (m?s), ([\d.]+) GB")
LENGTHS = (512, 2048, 8192, 32768)


def measured(text: str) -> dict[str, list[tuple[int, float, float]]]:
    """Length, seconds and gigabytes of each measurement, by mechanism."""
    section = text.split("## Measured")[1].split("\n## ")[0]
    found = {}
    for name, cells in _ROW.findall(section):
        points = [
            (length, float(cell[1]) / (1000 if cell[2] == "ms" else 1), float(cell[3]))
            for length, text in zip(LENGTHS, cells.split("|"), strict=False)
            if (cell := _CELL.search(text))
        ]
        found[name] = points
    return found


def draw(folder: Path) -> None:
    """Writes the picture."""
    points = measured(TABLE.read_text())
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    for name in SHOWN:
        lengths, seconds, gigabytes = zip(*points[name], strict=True)
        axes[0].loglog(lengths, seconds, marker="o", markersize=4, label=name)
        axes[1].loglog(lengths, gigabytes, marker="o", markersize=4, label=name)
    for axis, label in zip(
        axes, ("seconds, forward and backward", "peak memory (GB)"), strict=True
    ):
        axis.set(xlabel="positions", ylabel=label)
        axis.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS], minor=False)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(folder / "cost.png")


if __name__ == "__main__":
    with plt.rc_context(LOOK):
        draw(Path(sys.argv[1]))
