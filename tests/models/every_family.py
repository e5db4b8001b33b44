"""A tiny model of every public class, with what it is called with."""

import keras
import numpy as np

from keras_attn import models
from tests.harness import numbers
from tests.models.families import CASES, INPUTS

IDS = np.array([[5, 7, 3, 9, 2], [4, 6, 2, 0, 0]], "int32")
TOKENS = {"token_ids": IDS}
SIZES = {"num_layers": 1, "hidden_dim": 6, "num_heads": 2, "intermediate_dim": 7}

OF_SEQ2SEQ = ("additive LSTM", "Luong", "GNMT", "synthesizers", "T5", "Marian", "convolutions")


def bert(**arguments):
    return models.Bert(11, **SIZES | {"max_length": 13} | arguments)


EVERY = {
    **{name: (CASES[name], INPUTS) for name in OF_SEQ2SEQ},
    "Transformer": (lambda: models.Transformer(11, **SIZES), INPUTS),
    "TransformerEncoder": (lambda: models.TransformerEncoder(11, **SIZES), TOKENS),
    "Bert": (bert, TOKENS | {"segment_ids": np.minimum(IDS, 1)}),
    "Bert, one segment": (bert, TOKENS),
    "Bert, shared blocks": (
        lambda: bert(embedding_dim=5, distinct_blocks=1, num_layers=2, num_segments=0),
        TOKENS,
    ),
    "Bert, disentangled": (
        lambda: bert(
            attention={"name": "disentangled", "num_buckets": 4},
            num_layers=2,
            share_positions=True,
            absolute_positions=False,
        ),
        TOKENS,
    ),
    "Bert, pre-norm": (
        lambda: bert(norm_first=True, gated=True, feed_forward_bias=False, norm_bias=False),
        TOKENS,
    ),
    "ETC": (lambda: models.ETC(11, **SIZES, radius=2, num_units=5), TOKENS),
    "CausalTransformer": (lambda: models.CausalTransformer(11, **SIZES), TOKENS),
    "GPT2": (lambda: models.GPT2(11, **SIZES, max_length=13), TOKENS),
    "Reformer": (
        lambda: models.Reformer(11, **SIZES, num_buckets=2, num_hashes=1, chunk_length=3),
        TOKENS,
    ),
    **{
        f"CompressiveTransformer, {compression}": (
            lambda compression=compression: models.CompressiveTransformer(
                11,
                **SIZES,
                segment_length=2,
                memory_length=2,
                compressed_length=2,
                compression_rate=2,
                compression=compression,
            ),
            TOKENS,
        )
        for compression in ("mean", "convolution")
    },
    "Ensemble": (
        lambda: models.Ensemble([models.Transformer(11, **SIZES), models.Transformer(11, **SIZES)]),
        INPUTS,
    ),
    "MaskedLanguageModel": (
        lambda: models.MaskedLanguageModel(bert()),
        TOKENS | {"positions": np.array([[1], [0]], "int32")},
    ),
    "PooledEncoder": (
        lambda: models.PooledEncoder(bert(), ["first", "mean"], [{"units": 3}]),
        TOKENS,
    ),
    "TokenClassifier": (lambda: models.TokenClassifier(bert(), 3), TOKENS),
    **{
        f"SequenceClassifier, {pooling}": (
            lambda pooling=pooling: models.SequenceClassifier(bert(), 3, pooling),
            TOKENS,
        )
        for pooling in ("mean", "max", "first", "pooler")
    },
    "PatchEncoder": (
        lambda: models.PatchEncoder((6, 10), (3, 5), **SIZES),
        {"images": numbers(1, 2, 6, 10, 3)},
    ),
    "Forecaster": (
        lambda: models.Forecaster(7, 5, known_scales=[2.0], patch_length=2, **SIZES),
        {"past": numbers(1, 2, 7, 2), "future": numbers(2, 2, 5, 1)},
    ),
    "FeatureEncoder": (
        lambda: models.FeatureEncoder(5, **SIZES),
        {"features": numbers(2, 2, 9, 5), "padding_mask": np.arange(9) < np.array([[9], [4]])},
    ),
}


def public_classes() -> set[str]:
    """Names of the classes of models."""
    found = (getattr(models, name) for name in models.__all__)
    return {x.__name__ for x in found if isinstance(x, type) and issubclass(x, keras.Model)}
