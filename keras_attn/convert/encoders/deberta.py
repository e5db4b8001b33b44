"""Hugging Face's DeBERTa in its second and third version."""

from collections.abc import Mapping
from typing import Any

from keras_attn.convert.encoders.family import EncoderFamily, EncoderNames, map_heads
from keras_attn.convert.encoders.heads import BERT_HEAD, MaskedHead
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.convert.files.written_config import written_activation
from keras_attn.models import Bert, SequenceClassifier
from keras_attn.validation import is_integer, require, require_one_of

# Parts of the scores by their names there, in the order of the modules' roles here.
_KINDS = {"p2c": "position_to_content", "c2p": "content_to_position"}


def _attention(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Disentangled attention as the configuration describes it."""
    kinds = config.get("pos_att_type") or ()
    kinds = kinds.lower().split("|") if isinstance(kinds, str) else kinds
    kinds = [str(kind).strip() for kind in kinds]
    for kind in kinds:
        require_one_of("pos_att_type", kind, _KINDS)
    is_relative = config.get("relative_attention", False)
    require(
        bool(is_relative) == bool(kinds),
        "`pos_att_type` must name parts of the scores where `relative_attention` is set.",
        relative_attention=is_relative,
        pos_att_type=kinds,
    )
    if not is_relative:
        return {"name": "dense", "dropout": arguments["attention_dropout"]}
    farthest = config.get("max_relative_positions", -1)
    buckets = config.get("position_buckets", -1)
    require(
        is_integer(farthest) and is_integer(buckets),
        "`max_relative_positions` and `position_buckets` must be integers.",
        max_relative_positions=farthest,
        position_buckets=buckets,
    )
    norm = str(config.get("norm_rel_ebd", "none")).strip().lower()
    require_one_of("norm_rel_ebd", norm, ("none", "layer_norm"))
    return {
        "name": "disentangled",
        "num_buckets": buckets if buckets > 0 else None,
        "max_distance": farthest if farthest > 0 else arguments["max_length"],
        "kinds": [_KINDS[kind] for kind in _KINDS if kind in kinds],
        "share_projections": bool(config.get("share_att_key", False)),
        "epsilon": arguments["epsilon"] if norm == "layer_norm" else None,
        "dropout": arguments["attention_dropout"],
    }


def _written(encoder: Bert, model: Any) -> dict[str, Any]:
    sizes, attention = encoder.get_config(), encoder.blocks[0].attention.get_config()
    keys = {"position_biased_input": sizes["absolute_positions"]}
    if isinstance(model, SequenceClassifier):
        keys["pooler_hidden_act"] = written_activation(sizes["pooler_activation"])
    if "kinds" not in attention:
        return keys | {"relative_attention": False}
    names = {ours: theirs for theirs, ours in _KINDS.items()}
    return keys | {
        "relative_attention": True,
        "pos_att_type": [names[kind] for kind in attention["kinds"]],
        "max_relative_positions": attention["max_distance"],
        "position_buckets": attention["num_buckets"] or -1,
        "share_att_key": attention["share_projections"],
        "norm_rel_ebd": "none" if attention["epsilon"] is None else "layer_norm",
    }


def _map_attention(weights: WeightMap, attention: Any, modules: list[str]) -> None:
    map_heads(weights, attention, modules)
    projection = getattr(attention, "distance_projection", None)
    if projection is not None:
        name = modules[0].rpartition(".")[0]
        weights.copy_linear(projection, *(f"{name}.pos_{role}_proj" for role in projection.heads))


def _masked_head(config: Mapping[str, Any]) -> MaskedHead:
    if config.get("legacy", True):
        return BERT_HEAD
    return MaskedHead.below("lm_predictions.lm_head.", "dense", "LayerNorm")


DEBERTA = EncoderFamily(
    model_type="deberta-v2",
    name="DebertaV2",
    prefix="deberta.",
    defaults={
        "vocab_size": 128_100,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "pad_token_id": 0,
    },
    only={"conv_kernel_size": 0, "z_steps": 0},
    others=(
        *("legacy", "max_relative_positions", "norm_rel_ebd", "pooler_hidden_act", "pos_att_type"),
        *("position_biased_input", "position_buckets", "relative_attention", "share_att_key"),
    ),
    further=lambda config: {
        "absolute_positions": bool(config.get("position_biased_input", True)),
        "share_positions": bool(config.get("relative_attention", False)),
    },
    attention=_attention,
    names=EncoderNames(
        heads=("query_proj", "key_proj", "value_proj"), distances="encoder.rel_embeddings"
    ),
    mapping=lambda config: _map_attention,
    written=_written,
    masked_head=_masked_head,
    text_transform="pooler.dense",
    text_output="classifier",
    text_activation="pooler_hidden_act",
    classifier_dropout=("cls_dropout",),
)
"""BERT with disentangled attention, and usually without absolute positions and segments."""
