"""How far a task's answers change with the weights that an export stores."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_attn.validation import UserError

Outputs = Mapping[str, np.ndarray]

TOLERANCE = 1e-3


@dataclasses.dataclass
class SignatureChange:
    """How far the answers of one signature changed.

    Attributes:
        changed: Number of examples to which the answer is another text, label or other ids.
        largest_difference: Of a number, such as a score, in answers that are equal otherwise;
            relative to the number where that is above 1.
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
    """How far the answers of all signatures changed.

    Attributes:
        examples: Number of examples that were compared.
        signatures: The change of each.
    """

    examples: int
    signatures: dict[str, SignatureChange]

    def require_within(self, tolerance: float, **received: Any) -> None:
        """Raises unless the change is tolerated.

        Args:
            tolerance: Share of the examples to which the answer may be another, and the largest
                difference of a number in an answer.
            **received: What brought the change about, for the error.

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
                "The weights must be stored in a dtype that leaves the task's answers as they are, "
                f"within the tolerance. Received: {options}, tolerance={tolerance:g}, with which "
                f"{'; '.join(beyond)}."
            )

    def describe(self) -> dict[str, Any]:
        """Returns the change as JSON has it."""
        return dataclasses.asdict(self)


def _aligned(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with the same sizes: what is shorter has padding at its end."""
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
