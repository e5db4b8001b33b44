"""Contrastive loss over the pairs of a batch."""

from typing import Any

import keras
from keras import ops

from keras_attn.ops.cross_entropy import PADDING_ID
from keras_attn.tensors import Tensor

SCALE = 20.0
"""Factor of cosines: the temperature of 0.05 of Gao et al., 2021."""

_EXCLUDED = -1e9


def contrastive_loss(
    sources: Any,
    targets: Any,
    source_numbers: Any,
    target_numbers: Any,
    label_smoothing: float = 0.0,
) -> tuple[Any, Any, Any, Any]:
    """Sums of the cross-entropy of finding each text's partner among those of the batch.

    Every source looks for its target among all targets, and every target for its source among all
    sources, by the cosines of their vectors times 20: InfoNCE in both directions, halved. What may
    not count as wrong is no candidate: a text that is equal to the partner or to the one that
    looks, and the partner of an equal text.

    Args:
        sources: Vectors, floating (pairs, features).
        targets: Vectors of their partners, of that shape.
        source_numbers: Integer (pairs,), equal for equal texts, in both lists; 0 for padding.
        target_numbers: The same of the targets.
        label_smoothing: Fraction of the probability to spread over the candidates, in [0, 1).

    Returns:
        Four scalars, float32 (float64 for float64 vectors), as of `token_cross_entropy`: the
        smoothed loss, the negative log-likelihood of the partners, the number of pairs that are no
        padding, and the number of partners found, where a tie counts as found and each direction
        as a half.

    References:
        van den Oord et al., 2018, https://arxiv.org/abs/1807.03748, equation 4; Gao et al., 2021,
        https://arxiv.org/abs/2104.08821, equation 5.
    """
    dtype = "float64" if keras.backend.standardize_dtype(sources.dtype) == "float64" else "float32"
    sources, targets = (_unit(ops.cast(vectors, dtype)) for vectors in (sources, targets))
    cosines = ops.matmul(sources, ops.transpose(targets))  # (source, target)
    real = ops.not_equal(source_numbers, PADDING_ID)
    candidates = _candidates(source_numbers, target_numbers)
    ways = [
        _one_way(SCALE * cosines, candidates, real, label_smoothing),
        _one_way(SCALE * ops.transpose(cosines), ops.transpose(candidates), real, label_smoothing),
    ]
    loss, nll, correct = ((there + back) / 2 for there, back in zip(*ways, strict=True))
    return loss, nll, ops.sum(ops.cast(real, dtype)), correct


def _candidates(source_numbers: Any, target_numbers: Any) -> Any:
    """Boolean (source, target): the partner, and what is certain not to be one."""
    source, other_source = source_numbers[:, None], source_numbers[None, :]
    target, other_target = target_numbers[:, None], target_numbers[None, :]
    alike = (source == other_source) | (target == other_target) | (source == other_target)
    real = ops.not_equal(source, PADDING_ID) & ops.not_equal(other_source, PADDING_ID)
    places = ops.arange(ops.shape(source_numbers)[0])
    return real & (ops.logical_not(alike) | (places[:, None] == places[None, :]))


def _one_way(logits: Tensor, candidates: Any, real: Tensor, label_smoothing: float) -> tuple:
    """Sums of loss, log-likelihood and correctness of rows with their partners on the diagonal."""
    zeros = ops.zeros_like(logits)
    logits = ops.where(candidates, logits, ops.cast(_EXCLUDED, logits.dtype))
    found = ops.diagonal(logits)
    largest = ops.max(logits, axis=1)
    log_total = ops.logsumexp(logits, axis=1)
    nll = log_total - found
    loss = nll
    if label_smoothing:
        count = ops.sum(ops.cast(candidates, logits.dtype), axis=1)
        mean = ops.sum(ops.where(candidates, logits, zeros), axis=1) / ops.maximum(count, 1)
        loss = log_total - (1 - label_smoothing) * found - label_smoothing * mean
    correct = ops.cast(found >= largest, logits.dtype)
    return tuple(
        ops.sum(ops.where(real, values, ops.zeros_like(values))) for values in (loss, nll, correct)
    )


def _unit(vectors: Tensor) -> Tensor:
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, 1e-24))
