"""Tasks that read the beginning of texts that are too long."""

import abc
from collections.abc import Sequence

from keras_attn.tasks.base import Task


class TruncatingTask(Task):
    """Base class of tasks that have a maximum length.

    Attributes:
        max_length: Maximum number of tokens of a text, including those around it.
        truncate: Whether the beginning of a longer text is read; otherwise it is an error.
    """

    max_length: int
    truncate: bool

    def count_truncated(self, texts: Sequence[str]) -> int:
        """Counts the texts that are too long for the task, which reads their beginning alone.

        Args:
            texts: What `predict` takes.
        """
        if not texts or not self.truncate:
            return 0
        return sum(count > self.max_length for count in self.token_counts(texts))

    @abc.abstractmethod
    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of texts before they are truncated, those around them included.

        Args:
            texts: What `predict` takes.
        """
