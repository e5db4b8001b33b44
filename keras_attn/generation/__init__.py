"""Decoding strategies over the step protocol, in the graph, on every Keras backend.

A strategy only needs the initial state of a model and its
`step(token_ids, state, index) -> (logits, state)`. `state` is
`{"source": tree, "hypothesis": tree}`: leaves of `"source"` have one row per source and are never
reordered, leaves of `"hypothesis"` have one row per hypothesis and are reordered with it.
"""

from keras_attn.generation.beam import STOPPING, beam_search
from keras_attn.generation.constraints import Constraints
from keras_attn.generation.greedy import greedy_search
from keras_attn.generation.result import LENGTH_PENALTY_FORMS, GenerationResult, length_normalizer
from keras_attn.generation.sampling import SamplingRules, check_seed, sample
from keras_attn.renamed import old_names

__all__ = [
    "LENGTH_PENALTY_FORMS",
    "STOPPING",
    "Constraints",
    "GenerationResult",
    "SamplingRules",
    "beam_search",
    "check_seed",
    "greedy_search",
    "length_normalizer",
    "sample",
]

__getattr__ = old_names(__name__, {"Hypotheses": "GenerationResult"}, globals())
