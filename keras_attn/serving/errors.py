"""Errors that clients receive, with their codes in gRPC and HTTP."""

import enum
import re

from keras_attn.export import SavedModelError
from keras_attn.validation import asserted

_MESSAGE_LIMIT = 400
_UNKNOWN_ID = re.compile(r"indices\[[\d,]+\] = (-?\d+) is not in \[0, (\d+)\)")


class Code(enum.Enum):
    """Error codes: gRPC's number, and the HTTP status that TensorFlow Serving uses for it."""

    OK = (0, 200)
    CANCELLED = (1, 499)
    UNKNOWN = (2, 500)
    INVALID_ARGUMENT = (3, 400)
    DEADLINE_EXCEEDED = (4, 504)
    NOT_FOUND = (5, 404)
    RESOURCE_EXHAUSTED = (8, 429)
    FAILED_PRECONDITION = (9, 400)
    OUT_OF_RANGE = (11, 400)
    UNIMPLEMENTED = (12, 501)
    INTERNAL = (13, 500)
    UNAVAILABLE = (14, 503)

    @property
    def number(self) -> int:
        """Number of the code in gRPC and in TensorFlow."""
        return self.value[0]

    @property
    def http_status(self) -> int:
        """Status of an answer over HTTP."""
        return self.value[1]


_BY_NUMBER = {code.number: code for code in Code}


class RequestError(Exception):
    """A request failed.

    Args:
        code: The error code.
        message: A message of one line for the client.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(shortened(message))
        self.code = code


def invalid(message: str) -> RequestError:
    """Returns the error of an invalid request."""
    return RequestError(Code.INVALID_ARGUMENT, message)


def from_model(error: SavedModelError) -> RequestError:
    """Returns the message of an error in a model, without the names of its nodes."""
    message = str(error).partition(" failed: ")[2] or str(error)
    message = message.partition(" [[{{")[0]
    if found := _UNKNOWN_ID.search(message):
        message = f"Token ids must be below {found[2]}. Received: {found[1]}."
    return RequestError(_BY_NUMBER.get(error.code, Code.UNKNOWN), asserted(message))


def shortened(message: str) -> str:
    """Returns a message of at most 400 characters."""
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[: _MESSAGE_LIMIT - 1]}…"
