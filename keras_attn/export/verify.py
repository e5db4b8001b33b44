"""Verification of an exported SavedModel under the conditions of TensorFlow Serving."""

import dataclasses
import signal
import subprocess
from pathlib import Path

from keras_attn.documents import parse_json
from keras_attn.export.c_api import SavedModelError, one_line
from keras_attn.export_manifest import read_manifest
from keras_attn.model_versions import latest_version
from keras_attn.processes import python_command, python_environment
from keras_attn.validation import require


@dataclasses.dataclass(frozen=True)
class Report:
    """The outcome of `verify`.

    Attributes:
        folder: The version folder that was checked.
        checks: The checks, one line each.
        findings: The problems found, one line each; empty if there are none.
        modules: The top-level Python modules of the checking process.

    Examples:
        >>> from pathlib import Path
        >>> extra = Path("exported/reviews/1/assets.extra")
        >>> (extra / "tf_serving_warmup_requests").unlink()  # a file is lost
        >>> report = verify("exported/reviews")
        >>> report.ok, report.findings
        (False, ('The warm-up records are missing.',))
    """

    folder: Path
    checks: tuple[str, ...]
    findings: tuple[str, ...]
    modules: frozenset[str] = dataclasses.field(default=frozenset(), repr=False)

    @property
    def ok(self) -> bool:
        """True if no problem was found."""
        return not self.findings

    def __str__(self) -> str:
        outcome = "verified" if self.ok else "FAILED"
        lines = [f"{self.folder}: {outcome}"]
        lines += [f"  checked  {check}" for check in self.checks]
        lines += [f"  found    {finding}" for finding in self.findings]
        return "\n".join(lines)


def verify(folder: str | Path, timeout: float = 600) -> Report:
    """Checks an exported SavedModel in TensorFlow's C++ runtime, without TensorFlow's Python.

    A separate process lints the SavedModel, loads it with XLA disabled as in TensorFlow Serving
    (enabled for exports with `jit`), compares its outputs with the golden outputs of the Python
    task, and replays the warm-up records. Nothing is written.

    Args:
        folder: A version folder, or the folder above, whose highest version is checked.
        timeout: Seconds after which the process is stopped.

    Returns:
        A report of checks and problems, which `print` shows.

    Raises:
        UserError: The SavedModel is missing, damaged, not exported by this package, or too slow.

    Examples:
        >>> report = verify("exported/reviews")
        >>> print(report)
        /.../exported/reviews/1: verified
          checked  lint: signatures, ... ops that TensorFlow Serving links, paths
          checked  loaded by TensorFlow ...'s C++ runtime, XLA disabled
          checked  golden outputs: 4 examples of attention, n_best, serving_default, token_ids
          checked  warm-up: 8 records replayed
    """
    folder = latest_version(folder).resolve()
    read_manifest(folder)
    command = python_command("keras_attn.export.verify_process", str(folder))
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3"} | python_environment()
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SavedModelError(
            f"Verifying {folder} took longer than {timeout:g} seconds."
        ) from error
    if process.returncode:
        raise SavedModelError(f"Verifying {folder} failed: {_last_words(process)}.")
    outcome = parse_json(process.stdout.splitlines()[-1], "the checking process")
    require(outcome["error"] is None, str(outcome["error"]))
    return Report(
        folder, tuple(outcome["checks"]), tuple(outcome["findings"]), frozenset(outcome["modules"])
    )


def _last_words(process: subprocess.CompletedProcess) -> str:
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        return f"TensorFlow's C++ runtime was stopped by {name}"
    lines = process.stderr.strip().splitlines()
    return one_line(lines[-1]) if lines else f"exit status {process.returncode}"
