"""The process behind `verify`: lint, load, golden outputs and warm-up records in the C++ runtime.

`python -m keras_attn.export.verify_process VERSION_FOLDER` prints a JSON object with the
checks, the problems found, and the error if the SavedModel cannot be loaded. It never imports
TensorFlow's Python, Keras or JAX.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_attn.export import c_api, golden, warmup
from keras_attn.export.lint import lint_saved_model
from keras_attn.export.runtime import CppSavedModel, SavedModelError, served_ops
from keras_attn.export_manifest import read_manifest
from keras_attn.validation import UserError

Inputs = Mapping[str, np.ndarray]

FORBIDDEN_MODULES = ("jax", "keras", "tensorflow", "tensorflow_text")


def check(folder: Path) -> tuple[list[str], list[str]]:
    """Returns the checks of a version folder and the problems found, one line each.

    Raises:
        UserError: The SavedModel is missing, damaged or not exported by this package.
    """
    jit = bool(read_manifest(folder).get("jit"))
    (examples, rtol), requests = golden.read_golden(folder), warmup.read_warmup(folder)
    ops = served_ops()
    findings = lint_saved_model(folder, ops, allow_xla=jit)
    checks = [f"lint: signatures, {len(ops)} ops that TensorFlow Serving links, paths"]
    with CppSavedModel(folder, disable_xla=not jit) as model:
        xla = "enabled, as the export says --jit" if jit else "disabled"
        version = c_api.load_tensorflow().TF_Version().decode()
        checks.append(f"loaded by TensorFlow {version}'s C++ runtime, XLA {xla}")
        for name, inputs, outputs in examples:
            findings += _compare(model, name, inputs, outputs, rtol)
        names = sorted({name for name, _, _ in examples})
        checks.append(f"golden outputs: {len(examples)} examples of {', '.join(names)}")
        unchecked = sorted(set(model.signatures) - set(names))
        findings += [f"Signature {name!r} has no golden outputs." for name in unchecked]
        findings += [line for request in requests for line in _replay(model, *request)]
        if not requests:
            findings.append("The warm-up records are missing.")
        checks.append(f"warm-up: {len(requests)} records replayed")
    return checks, findings


def _compare(
    model: CppSavedModel, name: str, inputs: Inputs, outputs: Inputs, rtol: float
) -> list[str]:
    try:
        received = model.run(name, inputs)
    except UserError as error:
        return [f"Golden outputs of signature {name!r}: {error}"]
    differences = golden.compare(outputs, received, rtol)
    return [f"Golden outputs of signature {name!r}: {difference}." for difference in differences]


def _replay(model: CppSavedModel, name: str, inputs: Inputs) -> list[str]:
    try:
        model.run(name, inputs)
    except UserError as error:
        return [f"Warm-up record of signature {name!r}: {error}"]
    return []


def main(folder: str) -> None:
    """Checks a version folder and prints the outcome."""
    outcome: dict[str, Any] = {"checks": [], "findings": [], "error": None}
    try:
        outcome["checks"], outcome["findings"] = check(Path(folder))
    except (UserError, OSError) as error:
        outcome["error"] = c_api.one_line(error)
    loaded = sorted(set(FORBIDDEN_MODULES) & set(sys.modules))
    if loaded:
        raise SavedModelError(f"The checking process loaded {', '.join(loaded)}.")
    outcome["modules"] = sorted({name.partition(".")[0] for name in sys.modules})
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
