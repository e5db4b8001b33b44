"""Result of all decoding strategies, and its scores."""

import math
from typing import NamedTuple

from keras import ops

from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import is_real, require, require_one_of

LENGTH_PENALTY_FORMS = ("gnmt", "length")


class GenerationResult(NamedTuple):
    """The best hypotheses of each source, best first.

    Where fewer than `n_best` hypotheses have a probability above 0, the rest have score and
    log-probability `-inf`, length 0 and only padding.

    Attributes:
        token_ids: int32 (batch, n_best, max_length), the generated tokens with their end token,
            and 0 after it.
        scores: float (batch, n_best), `log_probabilities` divided by the length penalty.
        log_probabilities: float (batch, n_best), summed over the generated tokens, the end token
            included.
        lengths: int32 (batch, n_best), the count of generated tokens, the end token included.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> start_ids, state = model.prefill(np.array([[1, 5, 9], [1, 7, 0]]), max_length=6)
        >>> found = greedy_search(model.step, state, start_ids, end_id=2, max_length=6)
        >>> found.token_ids.shape, found.lengths.shape
        ((2, 1, 6), (2, 1))
    """

    token_ids: Tensor
    scores: Tensor
    log_probabilities: Tensor
    lengths: TensorLike


def length_normalizer(
    lengths: TensorLike, length_penalty: float, dtype: str = "float32", form: str = "gnmt"
) -> Tensor:
    """Computes the length penalty, by which log-probabilities are divided.

    Args:
        lengths: int tensor or int, counts of tokens with the end token.
        length_penalty: The exponent; 0 for no penalty, larger values favor longer hypotheses.
        dtype: Dtype of the result.
        form: "gnmt" for `((5 + length) / 6) ** length_penalty`, "length" for
            `length ** length_penalty`, as in Hugging Face.

    Returns:
        A float tensor of the shape of `lengths`, 1 where the length is 1.

    Examples:
        >>> float(length_normalizer(7, length_penalty=1.0))  # (5 + 7) / 6
        2.0

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), section 7, equation 14.
    """
    lengths = ops.cast(lengths, dtype)
    if form == "length":
        # Hypotheses that do not exist have length 0.
        return ops.power(ops.maximum(lengths, 1.0), length_penalty)
    return ops.power((lengths + 5.0) / 6.0, length_penalty)


def check_length_penalty(length_penalty: float, form: str = "gnmt") -> None:
    """Raises `UserError` unless the penalty is a finite number of 0 or more, of a known form."""
    require_one_of("length_penalty_form", form, LENGTH_PENALTY_FORMS)
    require(
        is_real(length_penalty) and 0 <= length_penalty < math.inf,
        "`length_penalty` must be a finite number of 0 or more.",
        length_penalty=length_penalty,
    )


def drop_impossible(found: GenerationResult) -> GenerationResult:
    """Clears hypotheses without probability."""
    exists = found.scores > -math.inf
    return GenerationResult(
        token_ids=ops.where(exists[..., None], found.token_ids, 0),
        scores=ops.where(exists, found.scores, -math.inf),
        log_probabilities=ops.where(exists, found.log_probabilities, -math.inf),
        lengths=ops.where(exists, found.lengths, 0),
    )
