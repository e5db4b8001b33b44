"""Sizes of the encoder-decoder Transformers, numbers only."""

from keras_attn.models.recipes import LETTERS_TO_PHONEMES, TRANSLATION

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

# The paper's recipe, sections 5 and 6.1; docs/wmt14.md has the commands.
PAPER_TRAINING = {
    # With padding, 4,096 on each of 8 GPUs: leaves about the paper's 25,000 tokens on either side.
    "batch_tokens": 32_768,
    "schedule": "transformer",
    "learning_rate": 1.0,
    "warmup_steps": 4_000,
    "label_smoothing": 0.1,
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-9,
    "clip_norm": 0.0,
    "steps": 100_000,
    # Checkpoints 10 minutes apart, at the paper's 0.4 seconds a step.
    "validate_every": 1_500,
    "average_last": 5,
}

# Ten minutes are fewer of the big model's steps, 1.0 seconds each.
_PAPER_BIG_TRAINING = PAPER_TRAINING | {
    "steps": 300_000,
    "validate_every": 600,
    "average_last": 20,
}


def _table_3(row, **changes):
    return {
        "description": row,
        "paper": _VASWANI,
        "config": BASE | changes,
        "recipe": TRANSLATION | {"training": PAPER_TRAINING},
    }


TRANSFORMER_PRESETS = {
    "transformer_base": _table_3("the paper's base model"),
    "transformer_big": _table_3(
        "the paper's big model",
        hidden_dim=1024,
        intermediate_dim=4096,
        num_heads=16,
        dropout=0.3,
    )
    | {"recipe": TRANSLATION | {"training": _PAPER_BIG_TRAINING}},
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
    "transformer_d_smoothing_0": _table_3("row D: label smoothing 0.0")
    | {"recipe": TRANSLATION | {"training": PAPER_TRAINING | {"label_smoothing": 0.0}}},
    "transformer_d_smoothing_2": _table_3("row D: label smoothing 0.2")
    | {"recipe": TRANSLATION | {"training": PAPER_TRAINING | {"label_smoothing": 0.2}}},
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
        "recipe": TRANSLATION
        | {
            "tokenizers": {
                "shared": True,
                "source": {
                    "kind": "sentencepiece",
                    "model_type": "bpe",
                    "vocabulary_size": 10_000,
                },
            },
            "decoding": {"beams": 5, "length_penalty": 1.0},
            "training": {
                "batch_tokens": 8_192,
                "schedule": "inverse_square_root",
                "learning_rate": 5e-3,
                "warmup_steps": 2_000,
                "label_smoothing": 0.1,
                "beta_2": 0.98,
                # At most 8,000 in the paper; these take two hours on one core.
                "steps": 5_000,
                "average_last": 10,
            },
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
        "recipe": LETTERS_TO_PHONEMES
        | {
            "training": {
                "batch_tokens": 2_048,
                "schedule": "cosine",
                "learning_rate": 3e-3,
                "warmup_steps": 400,
                "label_smoothing": 0.1,
                "beta_2": 0.98,
                "epochs": 6,
            },
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
        "recipe": LETTERS_TO_PHONEMES
        | {
            "training": {
                "batch_tokens": 4_096,
                "schedule": "cosine",
                "optimizer": "muon",
                "learning_rate": 3e-3,
                "warmup_steps": 500,
                "label_smoothing": 0.1,
                "beta_2": 0.98,
                "epochs": 47,
                "average_last": 8,
            },
        },
    },
}
