"""Sizes of Reformers, numbers only."""

from keras_attn.models.presets import stack_config

_KITAEV = "Kitaev et al., 2020, https://arxiv.org/abs/2001.04451"

REFORMER_PRESETS = {
    "reformer_tiny": {
        "description": "small language model of hashed attention, quick to train",
        "paper": f"sizes of our own, the layers of {_KITAEV}",
        "config": stack_config(
            2, 128, 4, 512, dropout=0.1, num_buckets=16, num_hashes=2, chunk_length=32
        ),
    },
}
