"""Time that tokenization inside the graph adds to an exported model's answer."""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.export import CppSavedModel
from keras_attn.export.golden import read_golden
from keras_attn.export.layout import read_manifest
from keras_attn.model_versions import latest_version
from keras_attn.validation import require, require_positive

_TEXTS, _IDS = "serving_default", "token_ids"


def benchmark_tokenization(folder: str | Path, batch: int = 16, runs: int = 30) -> dict[str, Any]:
    """Times the signature of texts against that of ids, in TensorFlow's C++ runtime.

    Both answer the export's own examples, repeated until they fill a batch, in turn, so that what
    else the machine does is shared by both; the numeric part is the same.

    Args:
        folder: A model exported by this package, or one of its versions.
        batch: Number of texts.
        runs: Runs of each that are timed, after one that is not.

    Returns:
        Seconds of each signature, the median and the least, and what texts add to ids: the median
        over the runs of the ratio of both, less 1, and the same of the least.

    Raises:
        UserError: There is no such model, or it has not both signatures.
    """
    require_positive(batch=batch, runs=runs)
    folder = latest_version(folder)
    examples = {name: inputs for name, inputs, _ in read_golden(folder).examples}
    missing = sorted({_TEXTS, _IDS} - set(examples))
    require(not missing, "The model must answer texts and ids.", missing_signatures=missing)
    inputs = {name: _filled(examples[name], batch) for name in (_TEXTS, _IDS)}
    seconds: dict[str, list[float]] = {_TEXTS: [], _IDS: []}
    jit = bool(read_manifest(folder)["jit"])
    with CppSavedModel(folder, disable_xla=not jit) as model:
        for _ in range(runs + 1):
            for name, measured in seconds.items():
                start = time.perf_counter()
                model.run(name, inputs[name])
                measured.append(time.perf_counter() - start)
    texts, ids = (seconds[name][1:] for name in (_TEXTS, _IDS))
    ratios = [text / id_ for text, id_ in zip(texts, ids, strict=True)]
    return {
        "model": folder.parent.name,
        "batch": batch,
        "runs": runs,
        "text_seconds": round(statistics.median(texts), 5),
        "ids_seconds": round(statistics.median(ids), 5),
        "least_text_seconds": round(min(texts), 5),
        "least_ids_seconds": round(min(ids), 5),
        "added": round(statistics.median(ratios) - 1, 4),
        "least_added": round(min(texts) / min(ids) - 1, 4),
    }


def _filled(inputs: Mapping[str, np.ndarray], batch: int) -> dict[str, np.ndarray]:
    return {name: array[np.arange(batch) % len(array)] for name, array in inputs.items()}
