"""Attention through all layers: how much of each input is left in each vector."""

from collections.abc import Sequence

import numpy as np


def attention_rollout(weights: Sequence[np.ndarray]) -> np.ndarray:
    """Follows attention from each layer down to the inputs.

    Every layer passes half of a position on by its residual connection, and half by its attention,
    averaged over the heads: Â = (A + I) / 2, rows scaled to a sum of 1. The rollout of a layer is
    its Â times the rollout of the layer below.

    Args:
        weights: For each layer, from the first one, (heads, length, length).

    Returns:
        float64 (layers, length, length): row i tells of which inputs position i is made.

    Reference:
        Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928, section 3.
    """
    rolled, below = [], None
    for layer in weights:
        mixed = np.mean(np.asarray(layer, np.float64), axis=0) + np.eye(layer.shape[-1])
        mixed /= mixed.sum(axis=-1, keepdims=True)
        below = mixed if below is None else mixed @ below
        rolled.append(below)
    return np.stack(rolled)
