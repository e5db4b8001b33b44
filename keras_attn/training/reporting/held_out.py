"""A few held-out inputs of a run, kept in its folder for the examples of an export."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from keras_attn.documents import read_json
from keras_attn.files import write_text
from keras_attn.training.reporting.run_folder import HELD_OUT_FILE
from keras_attn.validation import UserError


def write_held_out(run: Path, inputs: Sequence[str | bytes]) -> None:
    """Writes inputs of a task, if there are some: texts, or images as their bytes in base64."""
    rows = [
        text if isinstance(text, str) else {"b64": base64.b64encode(text).decode("ascii")}
        for text in inputs
    ]
    if rows:
        write_text(run / HELD_OUT_FILE, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def held_out_inputs(run: str | Path) -> list[str | bytes]:
    """The held-out inputs of a run, or the texts that samples.json has predictions for.

    Files that are missing or damaged have none.
    """
    for name, read in ((HELD_OUT_FILE, _inputs), ("samples.json", _sources)):
        try:
            if (Path(run) / name).is_file():
                return read(read_json(Path(run) / name))
        except (UserError, LookupError, TypeError, ValueError):
            pass
    return []


def _inputs(rows: list) -> list[str | bytes]:
    return [
        base64.b64decode(row["b64"], validate=True) if isinstance(row, dict) else str(row)
        for row in rows
    ]


def _sources(samples: list) -> list[str | bytes]:
    return [str(source) for source, _, _ in samples[-1]["texts"]]
