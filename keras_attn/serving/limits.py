"""How much one request, and all of them together, may ask for."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from keras_attn.serving.errors import invalid


@dataclasses.dataclass(frozen=True)
class Limits:
    """What is refused before a model sees it.

    Attributes:
        body_bytes: Largest body of a request over HTTP, and largest message over gRPC.
        rows: Most rows of one request.
        text_bytes: Longest text (or image) of one row.
        values: Most numbers or texts of one input.
        queue: Most requests that wait for one model.
        connections: Most connections, or calls over gRPC, at the same time.
        timeout: Seconds that a request may wait and run.
        read_timeout: Seconds in which a client must have sent its headers, and its body.
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
        """Most pieces in which a body may come: of 512 bytes each if it is the largest."""
        return max(1024, self.body_bytes // 512)

    def check(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Refuses inputs that are too large.

        Args:
            inputs: Arrays by name; strings as bytes.

        Raises:
            RequestError: There are too many rows, or a text is too long.
        """
        for name, array in inputs.items():
            if array.ndim:
                self.check_rows(array.shape[0], f" in input {name!r}")
            if array.dtype == object:
                longest = max(map(len, array.flat), default=0)
                if longest > self.text_bytes:
                    raise invalid(
                        f"A text may have at most {self.text_bytes} bytes. "
                        f"Received: {longest} in input {name!r}."
                    )

    def check_rows(self, rows: int, place: str = "") -> None:
        """Refuses too many rows, before any of them is looked at.

        Args:
            rows: Number of rows.
            place: Where they are.

        Raises:
            RequestError: There are too many.
        """
        if rows > self.rows:
            raise invalid(f"A request may have at most {self.rows} rows. Received: {rows}{place}.")
