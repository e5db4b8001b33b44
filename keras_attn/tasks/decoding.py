"""Settings of generation, kept with a task."""

import dataclasses
import math
import numbers
from typing import Any

from keras_attn.validation import require, require_one_of, require_positive


@dataclasses.dataclass(frozen=True)
class DecodingSettings:
    """How a task generates.

    Attributes:
        beams: Width of the beam search; 1 is greedy search.
        length_penalty: Exponent of the length penalty, 0 for none.
        max_source_length: Most tokens of a source, its end token included.
        max_length: Most tokens of what is generated, its end token included.
        min_length: Fewest tokens of what is generated, its end token included.
    """

    beams: int = 4
    length_penalty: float = 0.6
    max_source_length: int = 256
    max_length: int = 256
    min_length: int = 0

    def __post_init__(self):
        require_positive(
            beams=self.beams,
            max_source_length=self.max_source_length,
            max_length=self.max_length,
        )
        whole = isinstance(self.min_length, numbers.Integral)
        require(
            whole and 0 <= self.min_length <= self.max_length,
            "`min_length` must be a whole number between 0 and `max_length`.",
            min_length=self.min_length,
            max_length=self.max_length,
        )
        require(
            isinstance(self.length_penalty, numbers.Real) and 0 <= self.length_penalty < math.inf,
            "`length_penalty` must be a finite number of at least 0.",
            length_penalty=self.length_penalty,
        )

    def replace(self, **changes: Any) -> "DecodingSettings":
        """Copies the settings with some changed, those of value `None` left as they are."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            require_one_of("decoding setting", name, names)
        changes = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, **changes)
