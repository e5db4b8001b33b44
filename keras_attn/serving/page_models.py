"""Facts about an export for the demo page: its task and example requests."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.export.golden import read_golden
from keras_attn.export.readme import row_request
from keras_attn.export_manifest import read_manifest
from keras_attn.validation import UserError

_EXAMPLES = 4  # of each signature
_SHORT, _LONGEST = 500, 1 << 16  # characters of an example as JSON


def model_facts(version_folder: Path) -> dict[str, Any]:
    """Returns the task and example requests of an export.

    Args:
        version_folder: Folder of the export.

    Returns:
        `task`, its name, and `examples`, rows of the REST API by signature, the first ones that
        are short. A SavedModel of other origin has no task and no examples.
    """
    try:
        task, examples = read_manifest(version_folder)["task"], read_golden(version_folder).examples
    except (UserError, KeyError):
        return {"task": None, "examples": {}}
    return {"task": task, "examples": {name: _rows(inputs) for name, inputs, _ in examples}}


def _rows(inputs: dict[str, np.ndarray]) -> list[Any]:
    count = min(map(len, inputs.values()), default=0)
    rows = [
        row_request({name: array[[row]] for name, array in inputs.items()})["instances"][0]
        for row in range(count)
    ]
    sizes = [len(json.dumps(row)) for row in rows]
    order = sorted(range(count), key=lambda row: max(sizes[row], _SHORT))
    return [rows[row] for row in order if sizes[row] <= _LONGEST][:_EXAMPLES]
