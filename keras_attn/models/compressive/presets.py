"""Sizes of language models with a memory, numbers only."""

from keras_attn.models.presets import stack_config

_DAI = "Dai et al., 2019, https://arxiv.org/abs/1901.02860"
_RAE = "Rae et al., 2019, https://arxiv.org/abs/1911.05507"

_TINY = stack_config(
    2, 128, 4, 512, dropout=0.1, norm_first=True, segment_length=32, memory_length=32
)

COMPRESSIVE_TRANSFORMER_PRESETS = {
    "transformer_xl_tiny": {
        "description": "small language model with a memory, quick to train",
        "paper": f"sizes of our own, the memory of {_DAI}",
        "config": _TINY | {"compressed_length": 0},
    },
    "compressive_tiny": {
        "description": "small language model with a compressed memory, quick to train",
        "paper": f"sizes of our own, the memories of {_RAE}",
        "config": _TINY | {"compressed_length": 32, "compression_rate": 4},
    },
    "transformer_xl_enwik8": {
        "description": "the paper's language model for enwik8, 12 layers of 512",
        "paper": _DAI,
        "config": stack_config(12, 512, 8, 2048, dropout=0.1)
        | {"segment_length": 512, "memory_length": 512, "compressed_length": 0},
    },
}
