"""Sizes of the encoder-decoder Transformers, numbers only."""

_VASWANI = "Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, Table 3"
_WU = 'Wu et al., ACL 2021, "Good for Misconceived Reasons" (Transformer-Tiny)'
_G2P = "layers and width of g2p-seq2seq, https://github.com/cmusphinx/g2p-seq2seq (3 layers, d 256)"

BASE = {
    "num_layers": 6,
    "hidden_dim": 512,
    "intermediate_dim": 2048,
    "num_heads": 8,
    "key_dim": 64,
    "value_dim": 64,
    "dropout": 0.1,
    "norm_first": False,
}


def _table_3(row, **changes):
    return {
        "description": row,
        "paper": _VASWANI,
        "config": BASE | changes,
    }


TRANSFORMER_PRESETS = {
    "transformer_base": _table_3("the paper's base model"),
    "transformer_big": _table_3(
        "the paper's big model",
        hidden_dim=1024,
        intermediate_dim=4096,
        num_heads=16,
        dropout=0.3,
    ),
    "transformer_a_heads_1": _table_3("row A: 1 head", num_heads=1, key_dim=512, value_dim=512),
    "transformer_a_heads_4": _table_3("row A: 4 heads", num_heads=4, key_dim=128, value_dim=128),
    "transformer_a_heads_16": _table_3("row A: 16 heads", num_heads=16, key_dim=32, value_dim=32),
    "transformer_a_heads_32": _table_3("row A: 32 heads", num_heads=32, key_dim=16, value_dim=16),
    "transformer_b_key_16": _table_3("row B: key size 16", key_dim=16),
    "transformer_b_key_32": _table_3("row B: key size 32", key_dim=32),
    "transformer_c_layers_2": _table_3("row C: 2 layers", num_layers=2),
    "transformer_c_layers_4": _table_3("row C: 4 layers", num_layers=4),
    "transformer_c_layers_8": _table_3("row C: 8 layers", num_layers=8),
    "transformer_c_hidden_256": _table_3(
        "row C: hidden size 256", hidden_dim=256, key_dim=32, value_dim=32
    ),
    "transformer_c_hidden_1024": _table_3(
        "row C: hidden size 1024", hidden_dim=1024, key_dim=128, value_dim=128
    ),
    "transformer_c_ff_1024": _table_3("row C: feed-forward size 1024", intermediate_dim=1024),
    "transformer_c_ff_4096": _table_3("row C: feed-forward size 4096", intermediate_dim=4096),
    "transformer_d_dropout_0": _table_3("row D: dropout 0.0", dropout=0.0),
    "transformer_d_dropout_2": _table_3("row D: dropout 0.2", dropout=0.2),
    "transformer_d_smoothing_0": _table_3("row D: label smoothing 0.0"),
    "transformer_d_smoothing_2": _table_3("row D: label smoothing 0.2"),
    "transformer_e_learned": _table_3(
        "row E: learned positions instead of sinusoids", learned_positions=512
    ),
    "transformer_tiny": {
        "description": "small translation model for 29,000 sentence pairs",
        "paper": _WU,
        "config": {
            "num_layers": 4,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
            "dropout": 0.3,
            "norm_first": False,
        },
    },
    "g2p_small": {
        "description": "letters to phonemes, quick to train",
        "paper": "sizes of our own",
        "config": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 512,
            "num_heads": 4,
            "dropout": 0.1,
            "norm_first": True,
        },
    },
    "g2p_base": {
        "description": "letters to phonemes, for two hours on two cores",
        "paper": _G2P,
        "config": {
            "num_layers": 3,
            "hidden_dim": 256,
            "intermediate_dim": 1024,
            "num_heads": 4,
            "dropout": 0.2,
            "norm_first": True,
            "rotary_positions": True,
        },
    },
}
