"""Coverage penalty, which favors hypotheses that have attended to the whole source."""

import math

from keras import ops

from keras_attn.tensors import Tensor
from keras_attn.validation import is_real, require

#: Key of a hypothesis' coverage in `state["hypothesis"]`.
COVERAGE = "coverage"
# Underflowing attention must not give an infinite penalty.
_LEAST = 1e-30


def check_coverage_penalty(coverage_penalty: float, state: dict) -> None:
    """Raises a UserError unless the penalty is a number and the state contains the coverage."""
    require(
        is_real(coverage_penalty) and 0 <= coverage_penalty < math.inf,
        "`coverage_penalty` must be a finite number of at least 0.",
        coverage_penalty=coverage_penalty,
    )
    hypothesis = state["hypothesis"]
    require(
        not coverage_penalty or (isinstance(hypothesis, dict) and COVERAGE in hypothesis),
        f"A coverage penalty needs `state['hypothesis']['{COVERAGE}']`.",
        coverage_penalty=coverage_penalty,
        state=sorted(hypothesis) if isinstance(hypothesis, dict) else type(hypothesis).__name__,
    )


def covered(coverage: Tensor, dtype: str) -> Tensor:
    """Computes the coverage of each hypothesis, at most 0: Σᵢ log(min(Σⱼ pᵢⱼ, 1)).

    Args:
        coverage: Float (rows, source), the sum of attention to each position of the source, 1 at
            padding.
        dtype: The dtype of the computation.

    Returns:
        Tensor (rows,).

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), equation 14.
    """
    coverage = ops.clip(ops.cast(coverage, dtype), _LEAST, 1.0)
    return ops.sum(ops.log(coverage), axis=-1)
