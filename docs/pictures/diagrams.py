"""Draws the diagrams of the documentation as SVG: the whole way, a block, the families."""

import html
import sys
from pathlib import Path

BOX, GAP, ROW = (176, 44), 28, 78
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b2431; text-anchor: middle }
.small { font-size: 12px; fill: #55606e }
.card { fill: #fff }
.box { fill: #eef3fb; stroke: #4a6fa5; stroke-width: 1.2; rx: 7 }
.kept { fill: #e9f6ee; stroke: #3f8a5d }
.line { fill: none; stroke: #55606e; stroke-width: 1.4; marker-end: url(#end) }
""".strip()


class Diagram:
    """Boxes in a grid, and arrows between them."""

    def __init__(self, columns: int, rows: int):
        self.size = (columns * (BOX[0] + GAP) + GAP, rows * ROW + GAP)
        self.parts: list[str] = []

    def box(self, column: float, row: float, text: str, below: str = "", kept: bool = False):
        """Adds a box; `kept` marks files and folders."""
        x, y = self._corner(column, row)
        kind = "box kept" if kept else "box"
        self.parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}"/>'
        )
        center, middle = x + BOX[0] / 2, y + BOX[1] / 2
        shift = -3 if below else 5
        self.parts.append(f'<text x="{center}" y="{middle + shift}">{html.escape(text)}</text>')
        if below:
            label = (
                f'<text class="small" x="{center}" y="{middle + 14}">{html.escape(below)}</text>'
            )
            self.parts.append(label)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], text: str = ""):
        """Adds an arrow from one place of the grid to another, along a row or down a column."""
        (x1, y1), (x2, y2) = self._corner(*start), self._corner(*end)
        if y1 == y2 and x1 < x2:
            points = (x1 + BOX[0], y1 + BOX[1] / 2, x2 - 3, y2 + BOX[1] / 2)
        elif y1 == y2:
            points = (x1, y1 + BOX[1] / 2, x2 + BOX[0] + 3, y2 + BOX[1] / 2)
        elif y1 < y2:
            points = (x1 + BOX[0] / 2, y1 + BOX[1], x2 + BOX[0] / 2, y2 - 3)
        else:
            points = (x1 + BOX[0] / 2, y1, x2 + BOX[0] / 2, y2 + BOX[1] + 3)
        self.parts.append('<path class="line" d="M{} {} L{} {}"/>'.format(*points))
        if text:
            x, y = (points[0] + points[2]) / 2, (points[1] + points[3]) / 2
            self.parts.append(f'<text class="small" x="{x}" y="{y - 6}">{html.escape(text)}</text>')

    def turn(self, start: tuple[float, float], end: tuple[float, float], side: float):
        """Adds an arrow around boxes, such as a residual connection."""
        (x1, y1), (x2, y2) = self._corner(*start), self._corner(*end)
        x = x1 + BOX[0] + side
        path = f"M{x1 + BOX[0]} {y1 + BOX[1] / 2} H{x} V{y2 + BOX[1] / 2} H{x2 + BOX[0] + 3}"
        self.parts.append(f'<path class="line" d="{path}"/>')

    def write(self, path: Path, title: str) -> None:
        """Writes the SVG."""
        width, height = self.size
        end = (
            '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#55606e"/></marker>'
        )
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'width="{width}" height="{height}"><title>{title}</title><style>{STYLE}</style>'
            f'<defs>{end}</defs><rect class="card" width="{width}" height="{height}" rx="10"/>'
            + "\n".join(self.parts)
            + "</svg>\n",
            encoding="utf-8",
        )

    def _corner(self, column: float, row: float) -> tuple[float, float]:
        return GAP + column * (BOX[0] + GAP), GAP / 2 + 6 + row * ROW


def whole_way() -> Diagram:
    """From texts to a server."""
    way = Diagram(5, 3)
    stations = [
        ("texts", "TSV, gzip, lists, tables", True),
        ("tokenizers", "inside the graph", False),
        ("model", "preset or checkpoint", False),
        ("training", "keras-attn train, fit", False),
        ("run folder", "run.yaml, metrics, task/", True),
    ]
    for column, (name, below, kept) in enumerate(stations):
        way.box(column, 0, name, below, kept)
        if column:
            way.arrow((column - 1, 0), (column, 0))
    way.arrow((4, 0), (4, 1))
    after = [
        ("SavedModel", "strings in, strings out", True),
        ("verify", "in the C++ runtime", False),
        ("TensorFlow Serving", "or keras-attn serve", False),
        ("answers", "REST, gRPC, page", True),
    ]
    way.box(4, 1, "export", "keras-attn export")
    way.arrow((4, 1), (4, 2))
    for number, (name, below, kept) in enumerate(after):
        way.box(4 - number, 2, name, below, kept)
        if number:
            way.arrow((5 - number, 2), (4 - number, 2))
    way.box(2, 1, "Hugging Face folder", "keras-attn convert", True)
    way.arrow((2, 1), (2, 0))
    return way


def block() -> Diagram:
    """A Transformer encoder block before and after its parts."""
    one = Diagram(2, 5)
    for row, (name, below) in enumerate(
        [
            ("input", "(batch, length, features)"),
            ("attention", "any mechanism"),
            ("add, normalize", "residual connection"),
            ("feed-forward", "each position alone"),
            ("add, normalize", "residual connection"),
        ]
    ):
        one.box(0.25, row, name, below)
        if row:
            one.arrow((0.25, row - 1), (0.25, row))
    one.turn((0.25, 0), (0.25, 2), 28)
    one.turn((0.25, 2), (0.25, 4), 14)
    return one


def families() -> Diagram:
    """The model families by what they are built from."""
    tree = Diagram(5, 4)
    tree.box(0.5, 0, "encoder", "all tokens at once")
    tree.box(2, 0, "decoder", "step by step")
    tree.box(3.5, 0, "encoder-decoder", "a source to a target")
    columns = {
        0: [
            ("Bert", "two segments"),
            ("TransformerEncoder", "any mechanism"),
            ("PatchEncoder", "images"),
        ],
        1: [("ETC", "global and local"), ("FeatureEncoder", "speech")],
        2: [
            ("GPT2", "CausalTransformer"),
            ("Reformer", "hashed, reversible"),
            ("CompressiveTransformer", "memories"),
        ],
        3: [
            ("Transformer", "attention in every layer"),
            ("T5, Marian", "checkpoints"),
            ("SynthesizerTransformer", "scores that compare nothing"),
        ],
        4: [
            ("RecurrentSeq2Seq", "RNN with attention"),
            ("GNMT", "deep LSTM"),
            ("ConvSeq2Seq", "convolutions"),
        ],
    }
    above = {0: 0.5, 1: 0.5, 2: 2, 3: 3.5, 4: 3.5}
    for column, models in columns.items():
        for row, (name, below) in enumerate(models, 1):
            tree.box(column, row, name, below)
        tree.arrow((above[column], 0), (column, 1))
    return tree


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    whole_way().write(folder / "whole_way.svg", "From texts to a server")
    block().write(folder / "block.svg", "A Transformer block")
    families().write(folder / "families.svg", "Model families")
