"""Random spans of a text for span corruption."""

from dataclasses import dataclass

import numpy as np

from keras_attn.validation import is_real, require


@dataclass(frozen=True)
class SpanNoise:
    """Chooses the spans of a text to remove.

    The numbers of removed tokens and spans depend only on the length of the text: a fraction of
    the tokens, at least one and never all, in spans of the given mean length, at least one span.
    All masks with these numbers are equally likely. At least one kept token is between two spans;
    a text may begin or end with a span. A text of one token is unchanged.

    Attributes:
        noise_density: Fraction of the tokens to remove, above 0 and below 1.
        mean_noise_span_length: Mean number of tokens in a span, at least 1.

    Raises:
        UserError: A number is out of its range.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, sections 3.1.4 and 3.3.4. In the
        authors' `random_spans_noise_mask` every text ends with a span, so that short texts always
        lose the same tokens.
    """

    noise_density: float = 0.15
    mean_noise_span_length: float = 3.0

    def __post_init__(self) -> None:
        density, mean = self.noise_density, self.mean_noise_span_length
        require(
            is_real(density) and 0 < density < 1,
            "`noise_density` must be a number above 0 and below 1.",
            noise_density=density,
        )
        require(
            is_real(mean) and 1 <= mean < float("inf"),
            "`mean_noise_span_length` must be a number of at least 1.",
            mean_noise_span_length=mean,
        )

    def counts(self, lengths: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """Computes how many tokens are removed, and in how many spans.

        Args:
            lengths: Lengths of the texts, integers of any shape.

        Returns:
            Numbers of removed tokens and of spans, int64 of that shape.
        """
        lengths = np.asarray(lengths, np.int64)
        dropped = np.maximum(np.rint(lengths * self.noise_density).astype(np.int64), 1)
        dropped = np.minimum(dropped, np.maximum(lengths - 1, 0))
        spans = np.maximum(np.rint(dropped / self.mean_noise_span_length).astype(np.int64), 1)
        # Each span has at least one token, and is at another gap between the kept tokens.
        return dropped, np.minimum(spans, np.minimum(dropped, lengths - dropped + 1))

    def mask(self, length: int, generator: np.random.Generator) -> np.ndarray:
        """Draws the tokens of a text to remove.

        Args:
            length: Number of its tokens.
            generator: Source of random numbers.

        Returns:
            Boolean (length,), true for tokens to remove.
        """
        dropped, spans = (int(count) for count in self.counts(length))
        is_noise = np.zeros(length, bool)
        if not spans:
            return is_noise
        gaps = np.sort(generator.choice(length - dropped + 1, spans, replace=False))
        cuts = np.sort(generator.choice(dropped - 1, spans - 1, replace=False)) + 1
        ends = np.append(cuts, dropped)  # of the spans, among the dropped tokens
        # A removed token follows the kept tokens before its span and the earlier removed tokens.
        spans_of_tokens = np.searchsorted(ends, np.arange(dropped), side="right")
        is_noise[gaps[spans_of_tokens] + np.arange(dropped)] = True
        return is_noise
