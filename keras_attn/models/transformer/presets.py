"""Sizes of the plain Transformers, numbers only."""

from keras_attn.models.presets import stack_config

_VASWANI = "Vaswani et al., 2017, https://arxiv.org/abs/1706.03762, Table 3"
_WU = 'Wu et al., ACL 2021, "Good for Misconceived Reasons" (Transformer-Tiny)'
_G2P = "layers and width of g2p-seq2seq, https://github.com/cmusphinx/g2p-seq2seq (3 layers, d 256)"

BASE = stack_config(6, 512, 8, 2048, key_dim=64, value_dim=64, dropout=0.1, norm_first=False)
_TINY = stack_config(2, 128, 4, 512, dropout=0.1, norm_first=True)
_ARENA = "Tay et al., 2021, https://arxiv.org/abs/2011.04006"


def _table_3(row, **changes):
    return {"description": row, "paper": _VASWANI, "config": BASE | changes}


TRANSFORMER_PRESETS = {
    "transformer_base": _table_3("the paper's base model"),
    "transformer_big": _table_3(
        "the paper's big model", hidden_dim=1024, intermediate_dim=4096, num_heads=16, dropout=0.3
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
        "config": stack_config(4, 128, 4, 256, dropout=0.3, norm_first=False),
    },
    "g2p_small": {
        "description": "letters to phonemes, quick to train",
        "paper": "sizes of our own",
        "config": _TINY,
    },
    "g2p_base": {
        "description": "letters to phonemes, for two hours on two cores",
        "paper": _G2P,
        "config": stack_config(
            3, 256, 4, 1024, dropout=0.2, norm_first=True, rotary_positions=True
        ),
    },
}

CAUSAL_TRANSFORMER_PRESETS = {
    "lm_tiny": {
        "description": "small language model, quick to train",
        "paper": "sizes of our own",
        "config": _TINY | {"rotary_positions": True},
    },
}

TRANSFORMER_ENCODER_PRESETS = {
    "encoder_tiny": {
        "description": "small classifier of texts, quick to train",
        "paper": "sizes of our own",
        "config": _TINY,
    },
    "listops_tiny": {
        "tasks": ("classification",),
        "description": "encoder for ListOps of up to 64 tokens (--data listops)",
        "paper": "task of Nangia and Bowman, 2018, https://arxiv.org/abs/1804.06028; our sizes",
        "config": stack_config(2, 64, 4, 128, dropout=0.1, norm_first=True),
    },
    "arena_tiny": {
        "tasks": ("classification", "masked_lm"),
        "description": "encoder for long sequences, for keras-attn benchmark arena",
        "paper": "tasks of Tay et al., 2021, https://arxiv.org/abs/2011.04006; our sizes",
        "config": stack_config(2, 64, 4, 128, dropout=0.1, norm_first=True),
    },
    **{
        f"arena_{task}": {
            "tasks": ("classification",),
            "description": f"Long Range Arena's model for {of}, for a GPU",
            "paper": f"{_ARENA}; sizes of its repository",
            "config": stack_config(*sizes, dropout=0.1, norm_first=True) | changes,
        }
        for task, of, sizes, changes in (
            ("listops", "ListOps", (4, 512, 8, 1024), {}),
            ("bytes", "texts as bytes", (4, 256, 4, 1024), {}),
            ("retrieval", "pairs of texts as bytes", (4, 128, 4, 512), {}),
            (
                "pathfinder",
                "Pathfinder-32",
                (4, 32, 4, 32),
                {"key_dim": 4, "value_dim": 4, "dropout": 0.2},
            ),
        )
    },
    "recall_tiny": {
        "tasks": ("token_classification",),
        "description": "causal encoder for recall (--data recall, induction, …)",
        "paper": "task of Arora et al., 2023, https://arxiv.org/abs/2312.04927; our sizes",
        "config": stack_config(2, 64, 1, 128, dropout=0.0, norm_first=True)
        | {"use_causal_mask": True},
    },
}
