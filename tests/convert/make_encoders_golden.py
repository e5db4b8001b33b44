"""Writes what the text encoders of `transformers` compute.

Neither PyTorch nor transformers is needed for the tests, only to make their files again:

    pip install torch transformers && python tests/convert/make_encoders_golden.py

Every parameter is drawn at random; no two sizes are equal. The folders, such as
`golden/big_bird_masked`, are checkpoints as `save_pretrained` writes them. The outputs are those of
each row alone, without padding, because three models let the padding of a batch change what they
compute: BigBird chooses between full and sparse attention by the length with padding, and counts
blocks of padding, as Longformer does; Nyströmformer's landmarks, convolutions and inverses read
other rows and padding. Rows of `golden/encoders.npz` end with zeros, those of ids with -1.
"""

import numpy as np
import torch
import transformers
from golden_files import GOLDEN, draw_parameters, empty_folder

VOCABULARY = 29
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-3,
    "attn_implementation": "eager",
}
LABELS = {
    "id2label": {0: "bad", 1: "fair", 2: "good"},
    "problem_type": "multi_label_classification",
}
LONGFORMER = SIZES | {"attention_window": [8, 4], "max_position_embeddings": 43}
BIG_BIRD = SIZES | {"block_size": 2, "num_random_blocks": 1, "max_position_embeddings": 41}
NYSTROM = SIZES | {"conv_kernel_size": 5, "max_position_embeddings": 41}
ESTIMATED = NYSTROM | {"num_landmarks": 4, "segment_means_seq_len": 12}
EXACT = NYSTROM | {"num_landmarks": 11, "segment_means_seq_len": 11}

POSITIONS = SIZES | {"max_position_embeddings": 37}
ROBERTA = POSITIONS | {"type_vocab_size": 1}
DISTILBERT = {
    "vocab_size": VOCABULARY,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 17,
    "max_position_embeddings": 37,
    "attn_implementation": "eager",
}
FACTORIZED = POSITIONS | {"embedding_size": 5}
ALBERT = FACTORIZED | {"num_hidden_layers": 5, "num_hidden_groups": 2}
MPNET = {key: value for key, value in POSITIONS.items() if key != "type_vocab_size"}
DEBERTA = POSITIONS | {
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 8,
    "max_relative_positions": 20,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}
MODERNBERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "max_position_embeddings": 37,
    "norm_eps": 1e-3,
    "local_attention": 6,
    "pad_token_id": 27,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
    "attn_implementation": "eager",
}
BIASED = {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True}
SHORT = (31, 9, 1)

# Name of the folder: architecture, configuration, lengths of the rows.
MODELS = {
    "longformer_masked": ("LongformerForMaskedLM", LONGFORMER, (31, 9, 1)),
    "longformer_encoder": ("LongformerModel", LONGFORMER | {"hidden_act": "silu"}, (31, 9, 1)),
    "longformer_local": ("LongformerForMaskedLM", LONGFORMER, (31, 9, 1)),
    "longformer_of_texts": ("LongformerForSequenceClassification", LONGFORMER | LABELS, (31, 9, 1)),
    "longformer_of_tokens": ("LongformerForTokenClassification", LONGFORMER | LABELS, (31, 9, 1)),
    # At most 14 positions attend to everything.
    "big_bird_masked": ("BigBirdForPreTraining", BIG_BIRD, (31, 14, 15, 1, 24)),
    "big_bird_encoder": (
        "BigBirdModel",
        BIG_BIRD | {"rescale_embeddings": True, "use_bias": False, "num_random_blocks": 2},
        (31, 18, 19, 22, 1),
    ),
    "big_bird_full": (
        "BigBirdForMaskedLM",
        BIG_BIRD | {"attention_type": "original_full"},
        (31, 5),
    ),
    "big_bird_of_texts": ("BigBirdForSequenceClassification", BIG_BIRD | LABELS, (31, 14, 15)),
    "nystromformer_masked": ("NystromformerForMaskedLM", ESTIMATED, (12, 12)),
    "nystromformer_encoder": ("NystromformerModel", EXACT, (31, 11, 1)),
    "nystromformer_of_texts": (
        "NystromformerForSequenceClassification",
        EXACT | LABELS,
        (31, 11, 1),
    ),
    "bert_masked": ("BertForPreTraining", POSITIONS | {"hidden_act": "quick_gelu"}, SHORT),
    "bert_encoder": ("BertModel", POSITIONS | {"pad_token_id": 3, "hidden_act": "mish"}, SHORT),
    "roberta_masked": ("RobertaForMaskedLM", ROBERTA, SHORT),
    "roberta_encoder": ("RobertaModel", ROBERTA | {"hidden_act": "relu2"}, SHORT),
    "xlm_roberta_of_texts": ("XLMRobertaForSequenceClassification", ROBERTA | LABELS, SHORT),
    "camembert_of_tokens": ("CamembertForTokenClassification", ROBERTA | LABELS, SHORT),
    "distilbert_masked": ("DistilBertForMaskedLM", DISTILBERT, SHORT),
    "distilbert_of_texts": ("DistilBertForSequenceClassification", DISTILBERT | LABELS, SHORT),
    "electra_masked": ("ElectraForMaskedLM", FACTORIZED, SHORT),
    "electra_encoder": ("ElectraModel", POSITIONS | {"embedding_size": 12}, SHORT),
    "electra_of_texts": ("ElectraForSequenceClassification", FACTORIZED | LABELS, SHORT),
    "albert_masked": ("AlbertForPreTraining", ALBERT, SHORT),
    "albert_encoder": ("AlbertModel", ALBERT | {"num_hidden_groups": 1}, SHORT),
    "albert_of_texts": ("AlbertForSequenceClassification", ALBERT | LABELS, SHORT),
    "mpnet_masked": ("MPNetForMaskedLM", MPNET, SHORT),
    "mpnet_encoder": ("MPNetModel", MPNET, SHORT),
    "mpnet_of_texts": ("MPNetForSequenceClassification", MPNET | LABELS, SHORT),
    "deberta_masked": ("DebertaV2ForMaskedLM", DEBERTA, SHORT),
    "deberta_v3_masked": ("DebertaV2ForMaskedLM", DEBERTA | {"legacy": False}, SHORT),
    "deberta_encoder": (
        "DebertaV2Model",
        DEBERTA
        | {"share_att_key": False, "position_buckets": -1, "pos_att_type": ["c2p"]}
        | {"norm_rel_ebd": "none", "position_biased_input": True, "type_vocab_size": 2},
        SHORT,
    ),
    "deberta_of_texts": (
        "DebertaV2ForSequenceClassification",
        DEBERTA | LABELS | {"share_att_key": False, "pooler_hidden_act": "tanh"},
        SHORT,
    ),
    "modernbert_masked": ("ModernBertForMaskedLM", MODERNBERT, SHORT),
    "modernbert_encoder": ("ModernBertModel", MODERNBERT | BIASED, SHORT),
    "modernbert_of_texts": (
        "ModernBertForSequenceClassification",
        MODERNBERT | LABELS | BIASED | {"classifier_pooling": "mean"},
        SHORT,
    ),
    "modernbert_of_tokens": ("ModernBertForTokenClassification", MODERNBERT | LABELS, SHORT),
}


def made(name, architecture, sizes, seed):
    """Writes a checkpoint; returns its model."""
    config = getattr(
        transformers, architecture.partition("For")[0].removesuffix("Model") + "Config"
    )
    torch.manual_seed(seed)
    model = getattr(transformers, architecture)(config(**sizes)).eval()
    draw_parameters(model, 0.5, r"(LayerNorm|layer_norm|norm)\.weight$")
    model.save_pretrained(empty_folder(name))
    return model


def outputs_of(model, token_ids, segment_ids, is_local):
    """The encoder's vectors of one row, and the logits of the head or the output of the pooler."""
    if "BigBird" in type(model).__name__:
        # A short input makes the model attend to everything from then on.
        model.base_model.set_attention_type(model.config.attention_type)
    further = {}
    if "Longformer" in type(model).__name__ and not is_local:
        further["global_attention_mask"] = torch.arange(token_ids.shape[1])[None] < 1
    if getattr(model.config, "type_vocab_size", 0):
        further["token_type_ids"] = segment_ids
    found = model(input_ids=token_ids, **further)
    hidden = model.base_model(input_ids=token_ids, **further)[0][:, : token_ids.shape[1]]
    for key in ("prediction_logits", "logits", "pooler_output"):
        if found.get(key) is not None:
            return hidden[0], found[key][0]
    return hidden[0], None


def padded(rows, length, value):
    widths = [[(0, length - len(row)), *[(0, 0)] * (row.ndim - 1)] for row in rows]
    pairs = zip(rows, widths, strict=True)
    return np.stack([np.pad(row.numpy(), width, constant_values=value) for row, width in pairs])


def main():
    arrays = {"torch": torch.__version__, "transformers": transformers.__version__}
    for seed, (name, (architecture, sizes, lengths)) in enumerate(MODELS.items()):
        model = made(name, architecture, sizes, seed)
        rng = np.random.default_rng(seed)
        # Only encoders alone are given segments.
        count = sizes.get("type_vocab_size", 1) if "For" not in architecture else 1
        found = {"token_ids": [], "segment_ids": [], "hidden": [], "outputs": []}
        for length in lengths:
            ids = rng.integers(0, VOCABULARY - 1, (1, length))
            ids = torch.tensor(ids + (ids >= model.config.pad_token_id))  # any but padding
            segments = torch.tensor(rng.integers(0, max(count, 1), (1, length)))
            with torch.no_grad():
                hidden, outputs = outputs_of(model, ids, segments, name == "longformer_local")
            for key, row in zip(found, (ids[0], segments[0], hidden, outputs), strict=True):
                found[key].append(row)
        for key, rows in found.items():
            if rows[0] is not None:
                of_sequences = key == "outputs" and rows[0].ndim == 1
                length = rows[0].shape[0] if of_sequences else max(lengths)
                arrays[f"{name}/{key}"] = padded(rows, length, -1 if key == "token_ids" else 0)
    np.savez_compressed(GOLDEN / "encoders.npz", **arrays)


if __name__ == "__main__":
    main()
