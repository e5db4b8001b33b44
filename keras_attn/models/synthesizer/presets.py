"""Sizes of the Synthesizers, numbers only."""

from keras_attn.models.transformer.presets import BASE, TRANSFORMER_PRESETS

_TAY = "Tay et al., 2020, https://arxiv.org/abs/2005.00743"
_SIZES = ("num_layers", "hidden_dim", "intermediate_dim", "num_heads", "dropout", "norm_first")


def _wmt14(row, *scores):
    return {
        "description": f"the base model with {row}",
        "paper": f"{_TAY}, Table 1",
        # As there, sequences of up to 256 tokens.
        "config": {name: BASE[name] for name in _SIZES} | {"scores": scores, "max_length": 256},
    }


SYNTHESIZER_PRESETS = {
    "synthesizer_fixed_random": _wmt14("random scores that are not trained", "fixed_random"),
    "synthesizer_random": _wmt14("random scores", "random"),
    "synthesizer_factorized_random": _wmt14("factorized random scores", "factorized_random"),
    "synthesizer_dense": _wmt14("dense scores", "dense"),
    "synthesizer_factorized_dense": _wmt14("factorized dense scores", "factorized_dense"),
    "synthesizer_random_dense": _wmt14("random and dense scores", "random", "dense"),
    "synthesizer_dense_vanilla": _wmt14("dense scores and dot products", "dense", "dot_product"),
    "synthesizer_random_vanilla": _wmt14("random scores and dot products", "random", "dot_product"),
    "synthesizer_small": {
        "description": "letters to phonemes with random and dense scores, quick to train",
        "paper": f"sizes of our own, the attention of {_TAY}",
        "config": TRANSFORMER_PRESETS["g2p_small"]["config"]
        | {"scores": ("random", "dense"), "max_length": 64},
    },
}
