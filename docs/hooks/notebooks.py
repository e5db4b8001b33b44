"""Shows executed notebooks as pages: their texts, their cells and what came out."""

import base64
import re

import nbformat
from mkdocs.structure.files import File, Files

_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def on_files(files: Files, config) -> Files:
    """Adds a page, and its pictures, for each notebook."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        name = notebook.src_uri.removesuffix(".ipynb")
        text, pictures = rendered(nbformat.reads(notebook.content_string, as_version=4), name)
        files.append(File.generated(config, f"{name}.md", content=text))
        for path, picture in pictures.items():
            files.append(File.generated(config, path, content=picture))
    return files


def rendered(notebook, name: str) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by path."""
    folder, _, stem = name.rpartition("/")
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        printed = ""
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{stem}_{len(pictures) + 1}.png"
                pictures[f"{folder}/{picture}"] = base64.b64decode(data["image/png"])
                alternative = data.get("text/plain", "picture").strip("<>")
                parts.append(f"![{alternative}]({picture})")
            else:
                printed += output.get("text") or data.get("text/plain", "")
        if printed.strip():
            parts.append(f"```text\n{_shown(printed)}\n```")
    end = f"[Notebook]({stem}.ipynb) · [script]({stem}.py)"
    return "\n\n".join([*parts, end]) + "\n", pictures


def _shown(printed: str) -> str:
    """What a terminal shows in the end: no colors, and of a line written again the last state."""
    lines = _COLORS.sub("", printed).rstrip().split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)
