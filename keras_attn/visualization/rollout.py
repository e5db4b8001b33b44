"""Attention rollout: the contribution of each input to each vector, through all layers."""

from collections.abc import Sequence

import numpy as np


def attention_rollout(weights: Sequence[np.ndarray]) -> np.ndarray:
    """Computes the attention of each layer to the inputs.

    Each layer is assumed to consist of equal parts of its residual connection and its attention,
    averaged over the heads: Â = (A + I) / 2, rows scaled to a sum of 1. The rollout of a layer is
    its Â times the rollout of the layer below.

    Args:
        weights: For each layer, from the first one, (heads, length, length).

    Returns:
        float64 (layers, length, length): row i contains the contribution of each input to position
        i.

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
