"""Sizes of BERT and its successors, numbers only."""

from typing import Any

from keras_attn.models.presets import stack_config

_DEVLIN = "Devlin et al., 2019, https://arxiv.org/abs/1810.04805"
_TURC = "Turc et al., 2019, https://arxiv.org/abs/1908.08962"
_LIU = "Liu et al., 2019, https://arxiv.org/abs/1907.11692"
_CONNEAU = "Conneau et al., 2020, https://arxiv.org/abs/1911.02116"
_SANH = "Sanh et al., 2019, https://arxiv.org/abs/1910.01108"
_CLARK = "Clark et al., 2020, https://arxiv.org/abs/2003.10555"
_LAN = "Lan et al., 2020, https://arxiv.org/abs/1909.11942"
_SONG = "Song et al., 2020, https://arxiv.org/abs/2004.09297"
_HE = "He et al., 2023, https://arxiv.org/abs/2111.09543"
_WARNER = "Warner et al., 2024, https://arxiv.org/abs/2412.13663"

# What a family changes, besides the sizes.
_ROBERTA = {"num_segments": 1, "skip_padding": True, "epsilon": 1e-5}
_DISTILBERT = {"num_segments": 0, "pooler": False}
_ELECTRA = {"pooler": False}
_ALBERT = {
    "embedding_dim": 128,
    "distinct_blocks": 1,
    "activation": "gelu_tanh",
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
_MPNET = {
    "num_segments": 0,
    "skip_padding": True,
    "epsilon": 1e-5,
    "share_positions": True,
    "attention": {"name": "dense", "dropout": 0.1, "relative_positions": "relative_bias"},
}
_DEBERTA = {
    "num_segments": 0,
    "absolute_positions": False,
    "share_positions": True,
    "epsilon": 1e-7,
    "pooler": False,
    "attention": {"name": "disentangled", "dropout": 0.1},
}
_MODERNBERT = {
    "max_length": 8192,
    "num_segments": 0,
    "absolute_positions": False,
    "norm_first": True,
    "gated": True,
    "feed_forward_bias": False,
    "norm_bias": False,
    "epsilon": 1e-5,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "pooler": False,
}


def _every_third(num_layers: int) -> list[dict[str, Any]]:
    """ModernBERT's attention: every third block sees everything, others 64 positions each way."""
    return [
        {"name": "local", "sliding_window": 65, "use_bias": False, "relative_positions": "rotary"}
        if number % 3
        else {
            "name": "dense",
            "use_bias": False,
            "relative_positions": {"name": "rotary", "max_wavelength": 160_000.0},
        }
        for number in range(num_layers)
    ]


# Name of the model, blocks, width, heads, width of the feed-forward networks, paper, differences.
_SIZES: dict[str, tuple] = {
    "bert_tiny": ("BERT", 2, 128, 2, 512, _TURC, {}),
    "bert_mini": ("BERT", 4, 256, 4, 1024, _TURC, {}),
    "bert_small": ("BERT", 4, 512, 8, 2048, _TURC, {}),
    "bert_medium": ("BERT", 8, 512, 8, 2048, _TURC, {}),
    "bert_base": ("BERT", 12, 768, 12, 3072, _DEVLIN, {}),
    "bert_large": ("BERT", 24, 1024, 16, 4096, _DEVLIN, {}),
    "roberta_base": ("RoBERTa", 12, 768, 12, 3072, _LIU, _ROBERTA),
    "roberta_large": ("RoBERTa", 24, 1024, 16, 4096, _LIU, _ROBERTA),
    "xlm_roberta_base": ("XLM-R", 12, 768, 12, 3072, _CONNEAU, _ROBERTA),
    "xlm_roberta_large": ("XLM-R", 24, 1024, 16, 4096, _CONNEAU, _ROBERTA),
    "distilbert_base": ("DistilBERT", 6, 768, 12, 3072, _SANH, _DISTILBERT),
    "electra_small": ("ELECTRA", 12, 256, 4, 1024, _CLARK, _ELECTRA | {"embedding_dim": 128}),
    "electra_base": ("ELECTRA", 12, 768, 12, 3072, _CLARK, _ELECTRA),
    "electra_large": ("ELECTRA", 24, 1024, 16, 4096, _CLARK, _ELECTRA),
    "albert_base": ("ALBERT", 12, 768, 12, 3072, _LAN, _ALBERT),
    "albert_large": ("ALBERT", 24, 1024, 16, 4096, _LAN, _ALBERT),
    "albert_xlarge": ("ALBERT", 24, 2048, 16, 8192, _LAN, _ALBERT),
    "albert_xxlarge": ("ALBERT", 12, 4096, 64, 16_384, _LAN, _ALBERT),
    "mpnet_base": ("MPNet", 12, 768, 12, 3072, _SONG, _MPNET),
    "deberta_v3_xsmall": ("DeBERTa-v3", 12, 384, 6, 1536, _HE, _DEBERTA),
    "deberta_v3_small": ("DeBERTa-v3", 6, 768, 12, 3072, _HE, _DEBERTA),
    "deberta_v3_base": ("DeBERTa-v3", 12, 768, 12, 3072, _HE, _DEBERTA),
    "deberta_v3_large": ("DeBERTa-v3", 24, 1024, 16, 4096, _HE, _DEBERTA),
    "modernbert_base": ("ModernBERT", 22, 768, 12, 1152, _WARNER, _MODERNBERT),
    "modernbert_large": ("ModernBERT", 28, 1024, 16, 2624, _WARNER, _MODERNBERT),
}


def _config(name: str) -> dict[str, Any]:
    _, num_layers, *sizes, _, differences = _SIZES[name]
    config = stack_config(num_layers, *sizes) | differences
    return config | {"attention": _every_third(num_layers)} if "gated" in config else config


BERT_PRESETS = {
    name: {
        "description": f"{model} of {num_layers} blocks, width {hidden_dim}",
        "paper": paper,
        "config": _config(name),
    }
    for name, (model, num_layers, hidden_dim, _, _, paper, _) in _SIZES.items()
}
