"""Perplexity from a summed log-likelihood."""

import math

from keras_attn.validation import require


def perplexity(negative_log_likelihood: float, tokens: int) -> float:
    """Returns exp(negative_log_likelihood / tokens).

    Args:
        negative_log_likelihood: Sum over all tokens of -log p, natural logarithm (nats).
        tokens: Number of tokens in the sum, end tokens included.

    Returns:
        The perplexity per token, lower is better; infinity where it is too large for a float.

    Raises:
        UserError: `tokens` is not positive.

    Examples:
        >>> round(perplexity(negative_log_likelihood=6.93, tokens=10), 2)
        2.0
    """
    require(tokens > 0, "`tokens` must be positive.", tokens=tokens)
    try:
        return math.exp(negative_log_likelihood / tokens)
    except OverflowError:
        return math.inf
