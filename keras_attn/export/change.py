"""Changes of a task's outputs by quantized weights."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_attn.validation import UserError

Outputs = Mapping[str, np.ndarray]


@dataclasses.dataclass
class SignatureChange:
    """The change of one signature's outputs.

    Attributes:
        changed: Number of examples with a different text, label or ids.
        largest_difference: Largest difference of a number, such as a score, in outputs that are
            equal otherwise; relative to the number where that is above 1.
    """

    changed: int = 0
    largest_difference: float = 0.0

    def add(self, expected: Outputs, received: Outputs) -> None:
        """Compares further answers, one for each place along dimension 0 of the outputs."""
        pairs = [_aligned(expected[name], received[name]) for name in expected]
        rows = len(pairs[0][0])
        changed = np.zeros(rows, bool)
        for before, after in pairs:
            differs = _differs(before, after).reshape(rows, -1)
            changed |= differs.any(axis=1)
        self.changed += int(changed.sum())
        for before, after in pairs:
            if before.dtype.kind == "f":
                counted = np.isfinite(before) & ~changed.reshape([rows] + [1] * (before.ndim - 1))
                numbers, others = before[counted].astype(float), after[counted].astype(float)
                differences = np.abs(others - numbers) / np.maximum(np.abs(numbers), 1)
                largest = float(differences.max(initial=0))
                self.largest_difference = max(self.largest_difference, largest)


@dataclasses.dataclass
class Change:
    """The changes of all signatures' outputs.

    Attributes:
        examples: Number of examples that were compared.
        signatures: The change of each.
    """

    examples: int
    signatures: dict[str, SignatureChange]

    def require_within(self, tolerance: float, **received: Any) -> None:
        """Raises an error if a change is larger than the tolerance.

        Args:
            tolerance: Largest allowed fraction of examples with different outputs, and largest
                allowed difference of a number in an output.
            **received: The settings that caused the change, for the message.

        Raises:
            UserError: A signature changed more.
        """
        beyond = [
            f"{name} changes {change.changed} of {self.examples} answers, and numbers by up to "
            f"{change.largest_difference:.2g}"
            for name, change in self.signatures.items()
            if change.changed > tolerance * self.examples or change.largest_difference > tolerance
        ]
        if beyond:
            options = ", ".join(f"{name}={value!r}" for name, value in received.items())
            raise UserError(
                "Fewer bits change the task's outputs by more than the tolerance: "
                f"{'; '.join(beyond)}. If that may be, set `tolerance` (--tolerance). Received: "
                f"{options}, tolerance={tolerance:g}."
            )

    def describe(self) -> dict[str, Any]:
        """Returns the change as JSON values."""
        return dataclasses.asdict(self)


def _aligned(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pads both arrays at the end to the same sizes."""
    shape = np.maximum(before.shape, after.shape)
    filler = b"" if before.dtype == object else 0

    def padded(array: np.ndarray) -> np.ndarray:
        widths = [(0, most - size) for most, size in zip(shape, array.shape, strict=True)]
        return np.pad(array, widths, constant_values=filler)

    return padded(before), padded(after)


def _differs(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    if before.dtype.kind != "f":
        return np.asarray(before != after)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    return ~same & ~(np.isfinite(before) & np.isfinite(after))
