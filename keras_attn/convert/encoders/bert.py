"""Hugging Face's BERT, and encoders that differ from it by a few values."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_attn.convert.encoders.family import BERT_ARGUMENTS, EncoderFamily, EncoderNames
from keras_attn.convert.encoders.heads import MaskedHead
from keras_attn.validation import is_integer, require

LM_HEAD = MaskedHead.below("lm_head.")
"""The modules of RoBERTa's head of masked language modeling."""


def position_after_padding(config: Mapping[str, Any], default: int = 1) -> int:
    """The row of the first position where they are counted from the id of padding on.

    Args:
        config: The configuration.
        default: Default of `pad_token_id`.

    Raises:
        UserError: There is no such id.
    """
    padding = config.get("pad_token_id", default)
    valid = is_integer(padding) and padding >= 0
    require(valid, "`pad_token_id` must be an integer, 0 or more.", pad_token_id=padding)
    return padding + 1


BERT = EncoderFamily(
    model_type="bert",
    name="Bert",
    prefix="bert.",
    defaults={"pad_token_id": 0},
    pooler="pooler.dense",
    text_transform="pooler.dense",
    text_output="classifier",
    text_activation="tanh",
)
"""Devlin et al., 2019."""

ROBERTA, XLM_ROBERTA, CAMEMBERT = (
    EncoderFamily(
        model_type=model_type,
        name=name,
        prefix="roberta.",
        defaults={"vocab_size": size, "pad_token_id": 1},
        further=lambda config: {"skip_padding": True},
        first_position=position_after_padding,
        spare_positions=True,
        pooler="pooler.dense",
        masked_head=lambda config: LM_HEAD,
        masked_activation="gelu",
        text_activation="tanh",
    )
    for model_type, name, size in (
        ("roberta", "Roberta", 50_265),
        ("xlm-roberta", "XLMRoberta", 30_522),
        ("camembert", "Camembert", 30_522),
    )
)
"""BERT with positions that are counted over real tokens."""

DISTILBERT = EncoderFamily(
    model_type="distilbert",
    name="DistilBert",
    prefix="distilbert.",
    keys={
        "vocab_size": ("vocabulary_size", 30_522),
        "n_layers": ("num_layers", 6),
        "dim": ("hidden_dim", 768),
        "n_heads": ("num_heads", 12),
        "hidden_dim": ("intermediate_dim", 3072),
        "max_position_embeddings": ("max_length", 512),
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
    },
    defaults={"pad_token_id": 0},
    activation_key="activation",
    others=("seq_classif_dropout",),
    further=lambda config: {"num_segments": 0, "epsilon": 1e-12},
    names=EncoderNames(
        block="transformer.layer.{}",
        attention="attention",
        heads=("q_lin", "k_lin", "v_lin"),
        attention_output="attention.out_lin",
        attention_norm="sa_layer_norm",
        intermediate="ffn.lin1",
        output="ffn.lin2",
        output_norm="output_layer_norm",
    ),
    masked_head=lambda config: MaskedHead(
        ("vocab_",),
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector.bias",
        "vocab_projector",
    ),
    text_transform="pre_classifier",
    text_output="classifier",
    text_activation="relu",
    classifier_dropout=("seq_classif_dropout",),
)
"""BERT of half the blocks, without segments."""

ELECTRA = EncoderFamily(
    model_type="electra",
    name="Electra",
    prefix="electra.",
    defaults={
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "pad_token_id": 0,
    },
    others=("embedding_size",),
    further=lambda config: _factorized(config, 256),
    written=lambda encoder, model: {"embedding_size": encoder.embedding.hidden_dim},
    masked_head=lambda config: MaskedHead(
        ("generator_",),
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
        "generator_lm_head",
    ),
    masked_activation="gelu",
    text_activation="gelu",
)
"""BERT with smaller embeddings, trained to detect replaced tokens."""

ALBERT = EncoderFamily(
    model_type="albert",
    name="Albert",
    prefix="albert.",
    defaults={
        "vocab_size": 30_000,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16_384,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": 0,
    },
    activation="gelu_new",
    only={"inner_group_num": 1},
    others=("classifier_dropout_prob", "embedding_size", "num_hidden_groups"),
    further=lambda config: {
        "embedding_dim": config.get("embedding_size", 128),
        "distinct_blocks": config.get("num_hidden_groups", 1),
    },
    written=lambda encoder, model: {
        "embedding_size": encoder.embedding.hidden_dim,
        "num_hidden_groups": len(encoder.blocks),
    },
    names=EncoderNames(
        projection="encoder.embedding_hidden_mapping_in",
        block="encoder.albert_layer_groups.{}.albert_layers.0",
        attention="attention",
        attention_output="attention.dense",
        attention_norm="attention.LayerNorm",
        intermediate="ffn",
        output="ffn_output",
        output_norm="full_layer_layer_norm",
    ),
    pooler="pooler",
    masked_head=lambda config: MaskedHead.below("predictions.", "dense", "LayerNorm"),
    text_transform="pooler",
    text_output="classifier",
    text_activation="tanh",
    classifier_dropout=("classifier_dropout_prob",),
)
"""BERT with smaller embeddings, whose blocks share their weights."""

MPNET = dataclasses.replace(
    ROBERTA,
    model_type="mpnet",
    name="MPNet",
    prefix="mpnet.",
    keys={key: value for key, value in BERT_ARGUMENTS.items() if key != "type_vocab_size"},
    defaults={"vocab_size": 30_527, "pad_token_id": 1},
    only={"relative_attention_num_buckets": 32},
    further=lambda config: {"num_segments": 0, "skip_padding": True, "share_positions": True},
    attention=lambda config, arguments: {
        "name": "dense",
        "dropout": arguments["attention_dropout"],
        "relative_positions": {"name": "relative_bias"},
    },
    names=EncoderNames(
        attention="attention.attn",
        heads=("q", "k", "v"),
        attention_output="attention.attn.o",
        attention_norm="attention.LayerNorm",
    ),
)
"""RoBERTa with relative positions, the same for all blocks, and no segments."""


def _factorized(config: Mapping[str, Any], hidden_dim: int) -> dict[str, Any]:
    """A projection where embeddings have another size than the blocks."""
    size = config.get("embedding_size", 128)
    return {} if size == config.get("hidden_size", hidden_dim) else {"embedding_dim": size}
