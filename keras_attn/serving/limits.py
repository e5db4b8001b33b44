"""Limits of requests."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_attn.serving.errors import invalid


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits that are checked before a model runs.

    Attributes:
        body_bytes: Largest body of a request over HTTP, and largest message over gRPC.
        rows: Most rows of one request, and most texts of one input, as the passages of queries.
        text_bytes: Longest text (or image) of one row.
        values: Most numbers or texts of one input.
        queue: Most waiting requests of one model.
        connections: Most connections, or calls over gRPC, at the same time.
        timeout: Seconds that a request may wait and run.
        read_timeout: Seconds within which a client must send its headers, and its body.

    Examples:
        >>> limits = Limits(rows=2, timeout=5.0)
        >>> limits.check_rows(3)
        Traceback (most recent call last):
        keras_attn.serving.errors.RequestError: A request may have at most 2 rows. Received: 3.
    """

    body_bytes: int = 4 << 20
    rows: int = 256
    text_bytes: int = 1 << 20
    values: int = 4 << 20
    queue: int = 512
    connections: int = 1024
    timeout: float = 30.0
    read_timeout: float = 10.0

    @property
    def chunks(self) -> int:
        """Most chunks of a body: chunks of 512 bytes for the largest body."""
        return max(1024, self.body_bytes // 512)

    def check(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Checks the size of inputs.

        Args:
            inputs: Arrays by name; strings as bytes.

        Raises:
            RequestError: There are too many rows or texts, or a text is too long.
        """
        for name, array in inputs.items():
            if array.ndim:
                self.check_rows(array.shape[0], f" in input {name!r}")
            if array.dtype == object and array.ndim > 1 and array.size > self.rows:
                raise invalid(
                    f"A request may have at most {self.rows} texts in an input, as {self.rows} "
                    f"rows. Received: {array.size} in input {name!r}."
                )
            if array.dtype == object:
                longest = max(map(len, array.flat), default=0)
                if longest > self.text_bytes:
                    raise invalid(
                        f"A text may have at most {self.text_bytes} bytes. "
                        f"Received: {longest} in input {name!r}."
                    )

    def check_rows(self, rows: int, place: str = "") -> None:
        """Checks the number of rows, before their contents.

        Args:
            rows: Number of rows.
            place: Their place, for the message.

        Raises:
            RequestError: There are too many.
        """
        if rows > self.rows:
            raise invalid(f"A request may have at most {self.rows} rows. Received: {rows}{place}.")
