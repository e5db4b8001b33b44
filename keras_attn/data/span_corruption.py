"""Span corruption, the pre-training objective of T5."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_attn.tokenizers import Tokenizer, sentinel_ids
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

    Examples:
        >>> noise = SpanNoise(noise_density=0.25, mean_noise_span_length=2)
        >>> noise.mask(16, np.random.default_rng(0)).astype(int)
        array([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0])

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


class SpanCorruption:
    """Replaces random spans by sentinel tokens, as in T5's pre-training.

    "Thank you for inviting me to your party last week" without "for inviting" and "last" becomes
    "Thank you <X> me to your party <Y> week". The target is "<X> for inviting <Y> last <Z>": each
    span after its sentinel, and a final sentinel. X, Y and Z are the first three sentinels.

    Args:
        tokenizer: Tokenizer of the texts.
        noise: Chooses the spans.

    Raises:
        UserError: The tokenizer has no sentinels, or does not recognize them in a text.

    Examples:
        >>> texts = ["thank you for inviting me to your party last week"]
        >>> tokenizer = train_tokenizer("sentencepiece", texts, vocabulary_size=36, sentinels=4)
        >>> ids = tokenizer.tokenize(texts).numpy()[0]
        >>> source, target = SpanCorruption(tokenizer).drawn(ids, seed=[1])
        >>> tokenizer.detokenize([source]).numpy()[0].decode()
        'thank you for invit<extra_id_0> to<extra_id_1>r party last week'
        >>> tokenizer.detokenize([target]).numpy()[0].decode()
        '<extra_id_0>ing me<extra_id_1> you<extra_id_2>'

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 3.1.4 and figure 2. The
        authors' program omits the final sentinel if a text ends with a span.
    """

    def __init__(self, tokenizer: Tokenizer, noise: SpanNoise | None = None) -> None:
        self.tokenizer = tokenizer
        self.noise = noise or SpanNoise()
        self._sentinels = sentinel_ids(tokenizer)
        require(
            len(self._sentinels) > 0,
            "Span corruption needs a tokenizer with sentinels, which `sentinels` of the kind "
            "sentencepiece makes.",
            tokenizer=tokenizer.kind,
        )

    def lengths(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Computes the lengths of corrupted texts and targets.

        Args:
            lengths: Lengths of the texts, integers of any shape.

        Returns:
            Lengths of the corrupted texts and of the targets, end ids included, int64 of that
            shape.
        """
        lengths = np.asarray(lengths, np.int64)
        dropped, spans = self.noise.counts(lengths)
        return lengths - dropped + spans + 1, dropped + spans + 2

    def longest_text(self, max_source_length: int, max_target_length: int | None = None) -> int:
        """Computes the length of the longest text that fits after corruption.

        Args:
            max_source_length: Most ids of the corrupted text, its end id included.
            max_target_length: Most ids of its target, its end id included; None for no limit.

        Returns:
            Its number of tokens.

        Raises:
            UserError: Not even a text of one token fits.
        """
        # A corrupted text is at least as long as the tokens that are kept.
        most = int(max_source_length / (1 - self.noise.noise_density)) + 1
        source, target = self.lengths(np.arange(1, most + 1))
        fits = (source <= max_source_length) & (target <= (max_target_length or np.inf))
        require(
            fits[0],
            "A corrupted text needs at least a token and an end id, its target a sentinel and an "
            "end id.",
            max_source_length=max_source_length,
            max_target_length=max_target_length,
        )
        return int(fits.sum())  # both lengths grow with the text's

    def check_sentinels(self, length: int) -> None:
        """Raises unless there are enough sentinels for the spans of a text of this length.

        Raises:
            UserError: There are fewer.
        """
        needed = int(self.noise.counts(length)[1]) + 1
        require(
            needed <= len(self._sentinels),
            "The tokenizer must have a sentinel for each span of the longest text and one for the "
            "end: increase its `sentinels`, or decrease `data.max_source_length`.",
            tokens=length,
            needed=needed,
            sentinels=len(self._sentinels),
        )

    def corrupted(self, ids: np.ndarray, is_noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Splits a text into the corrupted text and its target.

        Args:
            ids: Its ids, int32 (length,).
            is_noise: True for ids to remove, boolean (length,).

        Returns:
            The corrupted text and its target, int32, without end ids.
        """
        begins = is_noise & ~np.concatenate([[False], is_noise[:-1]])
        spans = int(begins.sum())
        dropped, kept = ids[is_noise], ids[~is_noise]
        # How many dropped, or kept, tokens come before each span.
        dropped_before = np.cumsum(is_noise)[begins] - 1
        kept_before = np.cumsum(~is_noise)[begins]
        sentinels = self._sentinels[: spans + 1]
        source = np.insert(kept, kept_before, sentinels[:-1])
        return source, np.append(np.insert(dropped, dropped_before, sentinels[:-1]), sentinels[-1])

    def drawn(self, ids: np.ndarray, seed: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Removes random spans of a text.

        Args:
            ids: Its ids, int32 (length,).
            seed: Integers; the same integers and ids always give the same result.

        Returns:
            The corrupted text and its target, int32, without end ids.
        """
        return self.corrupted(ids, self.noise.mask(len(ids), np.random.default_rng(seed)))
