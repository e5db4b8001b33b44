"""The cross-entropy of integer labels, written out."""

import numpy as np


def naive_loss(labels, logits, smoothing):
    """Per-token loss from the whole distributions, one token after the other, in float64."""
    losses = np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        row = logits[place].astype(np.float64)
        log_probabilities = row - row.max() - np.log(np.exp(row - row.max()).sum())
        target = np.full(len(row), smoothing / len(row))
        target[labels[place]] += 1 - smoothing
        losses[place] = -(target * log_probabilities).sum() if labels[place] else 0.0
    return losses
