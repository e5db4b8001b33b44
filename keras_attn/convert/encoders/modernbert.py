"""Hugging Face's ModernBERT."""

from collections.abc import Mapping
from typing import Any

from keras_attn.convert.encoders.family import EncoderFamily, EncoderNames
from keras_attn.convert.encoders.heads import MaskedHead
from keras_attn.convert.files.configuration import ACTIVATIONS
from keras_attn.convert.files.written_config import written_activation
from keras_attn.layers import LocalAttention
from keras_attn.models import Bert, MaskedLanguageModel
from keras_attn.validation import is_integer, require, require_one_of

_GLOBAL, _LOCAL = "full_attention", "sliding_attention"
# By the kind of a block: the key of the base of its rotary positions in older files, and its
# default.
_BASES = {_GLOBAL: ("global_rope_theta", 160_000.0), _LOCAL: ("local_rope_theta", 10_000.0)}
_POOLING = {"cls": "first", "mean": "mean"}


def _attention(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attention to everything or in windows, each with its own rotary positions."""
    window = config.get("local_attention", 128)
    require(
        is_integer(window) and window > 0 and window % 2 == 0,
        "`local_attention` must be an even number above 0.",
        local_attention=window,
    )
    bias = bool(config.get("attention_bias", False))
    shared = {"dropout": arguments["attention_dropout"], "use_bias": bias}

    def block(kind: str) -> dict[str, Any]:
        rotary = {"name": "rotary", "max_wavelength": _base(config, kind)}
        own = {"name": "dense"}
        if kind == _LOCAL:
            own = {"name": "local", "sliding_window": window // 2 + 1}
        return own | shared | {"relative_positions": rotary}

    return [block(kind) for kind in _kinds(config, arguments["num_layers"])]


def _kinds(config: Mapping[str, Any], num_layers: int) -> list[str]:
    """The kind of each block."""
    every = config.get("global_attn_every_n_layers", 3)
    require(
        is_integer(every) and every > 0,
        "`global_attn_every_n_layers` must be a number above 0.",
        global_attn_every_n_layers=every,
    )
    default = [_LOCAL if number % every else _GLOBAL for number in range(num_layers)]
    kinds = config.get("layer_types") or default
    for kind in kinds:
        require_one_of("layer_types", kind, _BASES)
    return kinds


def _base(config: Mapping[str, Any], kind: str) -> float:
    """The base of the rotary positions of a kind of blocks."""
    key, default = _BASES[kind]
    parameters = (config.get("rope_parameters") or {}).get(kind) or {}
    form = parameters.get("rope_type", "default")
    require(form == "default", "Rotary positions must be of the default type.", rope_type=form)
    return float(parameters.get("rope_theta", config.get(key) or default))


def _head_transform(config: Mapping[str, Any]) -> dict[str, Any]:
    activation = config.get("classifier_activation", "gelu")
    require_one_of("classifier_activation", activation, ACTIVATIONS)
    pooling = config.get("classifier_pooling", "cls")
    require_one_of("classifier_pooling", pooling, _POOLING)
    return {
        "activation": ACTIVATIONS[activation],
        "use_bias": bool(config.get("classifier_bias", False)),
        "norm_bias": bool(config.get("norm_bias", False)),
        "pooling": _POOLING[pooling],
    }


def _written(encoder: Bert, model: Any) -> dict[str, Any]:
    layers = [block.attention for block in encoder.blocks]
    kinds = [_LOCAL if isinstance(layer, LocalAttention) else _GLOBAL for layer in layers]
    bases = {
        kind: getattr(layer.relative_positions, "max_wavelength", None)
        for kind, layer in zip(kinds, layers, strict=True)
    }
    windows = [layer.sliding_window for layer in layers if isinstance(layer, LocalAttention)]
    return {
        "layer_types": kinds,
        "local_attention": 2 * (min(windows) - 1) if windows else 128,
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": bases.get(kind) or default}
            for kind, (_, default) in _BASES.items()
        },
        "attention_bias": layers[0].get_config().get("use_bias", True),
        **_written_head(model),
    }


def _written_head(model: Any) -> dict[str, Any]:
    """Keys of the dense layer of a head."""
    sizes = model.get_config()
    if isinstance(model, MaskedLanguageModel):
        activation, bias = sizes["activation"], sizes["transform_bias"]
    elif sizes.get("transform"):
        transform = model.get_layer("transform").get_config()
        activation, bias = transform["activation"], transform["use_bias"]
    else:
        return {}
    names = {ours: theirs for theirs, ours in _POOLING.items()}
    return {
        "classifier_activation": written_activation(activation),
        "classifier_bias": bias,
        "classifier_pooling": names.get(sizes.get("pooling"), "cls"),
    }


MODERNBERT = EncoderFamily(
    model_type="modernbert",
    name="ModernBert",
    prefix="model.",
    keys={
        "vocab_size": ("vocabulary_size", 50_368),
        "num_hidden_layers": ("num_layers", 22),
        "hidden_size": ("hidden_dim", 768),
        "num_attention_heads": ("num_heads", 12),
        "intermediate_size": ("intermediate_dim", 1152),
        "max_position_embeddings": ("max_length", 8192),
        "embedding_dropout": ("dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "norm_eps": ("epsilon", 1e-5),
        "mlp_bias": ("feed_forward_bias", False),
        "norm_bias": ("norm_bias", False),
    },
    defaults={"pad_token_id": 50_283},
    activation_key="hidden_activation",
    only={"decoder_bias": True},
    others=(
        *("attention_bias", "classifier_activation", "classifier_bias", "classifier_pooling"),
        *("global_attn_every_n_layers", "global_rope_theta", "layer_types", "local_attention"),
        *("local_rope_theta", "rope_parameters", "cls_token_id"),
    ),
    further=lambda config: {
        "num_segments": 0,
        "absolute_positions": False,
        "norm_first": True,
        "gated": True,
    },
    attention=_attention,
    names=EncoderNames(
        tokens="embeddings.tok_embeddings",
        norm="embeddings.norm",
        block="layers.{}",
        attention="attn",
        heads=("Wqkv",),
        attention_output="attn.Wo",
        attention_norm="attn_norm",
        intermediate="mlp.Wi",
        output="mlp.Wo",
        output_norm="mlp_norm",
    ),
    masked_head=lambda config: MaskedHead(
        ("head.", "decoder."), "head.dense", "head.norm", "decoder.bias", "decoder"
    ),
    text_output="classifier",
    head_transform=_head_transform,
    written=_written,
)
"""Pre-norm BERT with rotary positions, windows, gated feed-forward networks and few biases."""
