"""In which precisions an export stores weights and computes."""

from keras_attn.validation import require, require_one_of

STORED = ("float32", "float16", "bfloat16", "int8")
"""Data types of stored weights."""

PRECISIONS = ("float32", "bfloat16", "int8")
"""Precisions of the computation."""

TOLERANCES = {"float32": 0.001, "bfloat16": 0.05, "int8": 0.1}
"""By default, the largest change of the outputs, by the precision of the computation."""


def check_precision(compute: str, weights: str, only: str, jit: bool) -> None:
    """Refuses precisions that do not belong together, before TensorFlow is imported.

    Args:
        compute: The precision of the computation.
        weights: The data type of stored weights.
        only: The part of the weights that is stored in it; "" for all.
        jit: Whether XLA compiles the model.

    Raises:
        UserError: One is unknown, or they do not belong together.
    """
    require_one_of("compute", compute, PRECISIONS)
    require_one_of("weights", weights, STORED)
    require(
        not (jit and compute == "int8"),
        "Integers are computed by an operation that XLA does not have: leave out `jit`.",
        compute=compute,
    )
    require(
        compute == "float32" or weights == "float32",
        "Weights are stored as they are computed with: leave out `weights` (--quantize).",
        weights=weights,
        compute=compute,
    )
    require(
        not only or weights != "float32",
        "A part of the weights (--quantize-only) needs `weights` (--quantize).",
        only=only,
        weights=weights,
    )
