"""The precisions of a training, known without Keras."""

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16", "float64")
"""Names of Keras dtype policies."""
