"""Draws what mechanisms remember, from the table of their page.

`python docs/pictures/recall.py docs/pages/images`
"""

import sys
from pathlib import Path

from keras_attn.benchmarks.arena.results import draw_arena

PAGE = Path(__file__).parents[1] / "pages" / "explanation" / "attention" / "recall.md"


def figures() -> list[dict]:
    """The table's rows as an arena's results: the columns are pairs at 256 words, then lengths."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    sizes = [head.split()[0] for head in heads[1:6]]
    tasks = [f"recall:length=256,pairs={size}" for size in sizes]
    tasks += [f"recall:length={head.split()[-1]},pairs=8" for head in heads[6:]]
    found = []
    for name, *cells in rows:
        values = dict(zip(tasks, map(float, cells), strict=True))
        first = {"task": tasks[0], "value": values.pop(tasks[0]), "majority": None}
        found.append({"mechanism": name.replace("`", ""), "probes": values} | first)
    return found


if __name__ == "__main__":
    draw_arena(figures(), Path(sys.argv[1]) / "recall.png")
