"""Differences between the text encoders of Hugging Face, as values."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_attn.convert.encoders.heads import BERT_HEAD, MaskedHead
from keras_attn.convert.files.weight_map import WeightMap

MASKED, OF_TEXTS, OF_TOKENS = "MaskedLM", "SequenceClassification", "TokenClassification"
OF_QUESTIONS = "QuestionAnswering"
_KINDS = {
    "ForMaskedLM": MASKED,
    "ForPreTraining": MASKED,
    f"For{OF_TEXTS}": OF_TEXTS,
    f"For{OF_TOKENS}": OF_TOKENS,
    f"For{OF_QUESTIONS}": OF_QUESTIONS,
}

BERT_ARGUMENTS = {
    "vocab_size": ("vocabulary_size", 30_522),
    "num_hidden_layers": ("num_layers", 12),
    "hidden_size": ("hidden_dim", 768),
    "num_attention_heads": ("num_heads", 12),
    "intermediate_size": ("intermediate_dim", 3072),
    "max_position_embeddings": ("max_length", 512),
    "type_vocab_size": ("num_segments", 2),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "layer_norm_eps": ("epsilon", 1e-12),
}
"""Arguments of `Bert` by the key of their value, with its default."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderNames:
    """Modules of a checkpoint by the parts of `Bert`.

    Attributes:
        tokens: Embedding of tokens.
        positions: Embedding of positions.
        segments: Embedding of segments.
        norm: Normalization of the embeddings.
        projection: Dense layer after it.
        block: Beginning of the names of a block, with `{}` for its number.
        attention: Beginning of the names of its attention, behind that of the block.
        heads: Projections to queries, keys and values, or one to all three, behind that of the
            attention.
        attention_output: Projection of the context, behind the name of the block, as all others.
        attention_norm: Normalization around the attention.
        intermediate: First dense layer of the feed-forward network; where it is gated, with the
            gate behind it.
        output: Last dense layer of the feed-forward network.
        output_norm: Normalization around the feed-forward network.
        distances: Embedding of relative positions that all blocks share.
        distance_norm: Normalization of their vectors.
        last_norm: Normalization after the last block.
    """

    tokens: str = "embeddings.word_embeddings"
    positions: str = "embeddings.position_embeddings"
    segments: str = "embeddings.token_type_embeddings"
    norm: str = "embeddings.LayerNorm"
    projection: str = "embeddings_project"
    block: str = "encoder.layer.{}"
    attention: str = "attention.self"
    heads: Sequence[str] = ("query", "key", "value")
    attention_output: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    intermediate: str = "intermediate.dense"
    output: str = "output.dense"
    output_norm: str = "output.LayerNorm"
    distances: str = "encoder.relative_attention_bias"
    distance_norm: str = "encoder.LayerNorm"
    last_norm: str = "final_norm"


def map_heads(
    weights: WeightMap, attention: Any, modules: Sequence[str], bias: bool = True
) -> None:
    """Maps the projections of an attention layer to the heads.

    Args:
        weights: The weight map.
        attention: The layer.
        modules: Modules of its roles in their order, or one of all.
        bias: Whether they have biases.
    """
    (projection,) = attention.projections
    weights.copy_linear(projection, *modules, bias=bias)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderFamily:
    """The differences between an encoder and BERT.

    Attributes:
        model_type: The `model_type` of its configurations.
        name: Beginning of the names of its architectures.
        prefix: Beginning of the names of the encoder's tensors in models with a head.
        keys: Arguments of `Bert` by the key of their value, with its default.
        defaults: Defaults by key where they are not those of `keys`.
        activation: Default of the activation.
        activation_key: Key of the activation.
        only: Further keys with a single supported value.
        others: Further keys, which the functions read.
        further: From the configuration to further arguments of `Bert`.
        attention: Makes the attention of all blocks, or a list with that of each block, from the
            configuration, the model's arguments and the user's options; `None` for multi-head.
        names: Modules of the encoder.
        mapping: From the configuration to what maps the weights of a block's attention, as
            `map_heads` does.
        first_position: From the configuration to the row of the first position in its table.
        spare_positions: Whether the rows before it are counted by `max_position_embeddings`.
        pooler: Name of the pooler's module, or `None`.
        masked_head: From the configuration to the modules of the head of masked language modeling.
        masked_activation: Activation in that head, that of the encoder by default.
        text_transform: Dense layer between the first vector and the output of a classifier of
            texts.
        text_output: Output of a classifier of texts.
        text_activation: Activation of `text_transform`, or the key of it; that of the encoder by
            default.
        head_transform: From the configuration to arguments of a `HeadTransform` in classifiers and
            the pooling of texts, in place of `text_transform`; `None` for none.
        other_heads: Kinds of heads that compute something else there, and are not used.
        classifier_dropout: Keys of the dropout before the output of a classifier, the first of them
            that there is; `hidden_dropout_prob` otherwise.
        notes: From the file and the configuration to notes for the user.
        options: Names of the user's options.
        written: From the encoder and the model, which may be a head on it, to the keys of `others`:
            the inverse of the functions that read them.
    """

    model_type: str
    name: str
    prefix: str
    keys: Mapping[str, tuple[str, Any]] = dataclasses.field(default_factory=lambda: BERT_ARGUMENTS)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    activation: str = "gelu"
    activation_key: str = "hidden_act"
    only: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    others: Sequence[str] = ()
    further: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda config: {}
    attention: Callable[..., Any] = lambda config, arguments: None
    names: EncoderNames = EncoderNames()
    mapping: Callable[[Mapping[str, Any]], Callable] = lambda config: map_heads
    first_position: Callable[[Mapping[str, Any]], int] = lambda config: 0
    spare_positions: bool = False
    pooler: str | None = None
    masked_head: Callable[[Mapping[str, Any]], MaskedHead] = lambda config: BERT_HEAD
    masked_activation: str | None = None
    text_transform: str = "classifier.dense"
    text_output: str = "classifier.out_proj"
    text_activation: str | None = None
    head_transform: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    other_heads: Sequence[str] = ()
    classifier_dropout: Sequence[str] = ("classifier_dropout",)
    notes: Callable[[Path, Mapping[str, Any]], tuple[str, ...]] = lambda path, config: ()
    options: Sequence[str] = ()
    written: Callable[[Any, Any], dict[str, Any]] = lambda encoder, model: {}

    @property
    def used(self) -> dict[str, tuple[str, Any]]:
        """Arguments of `Bert` by the key of their value, with its default."""
        return {
            key: (name, self.defaults.get(key, default))
            for key, (name, default) in self.keys.items()
        }

    def value(self, config: Mapping[str, Any], key: str, default: Any = None) -> Any:
        """The value of a key, or its default."""
        return config.get(key, self.defaults.get(key, default))

    def head(self, config: Mapping[str, Any]) -> str | None:
        """The kind of the head, or `None` where it is none of those that are supported."""
        names = config.get("architectures") or ()
        kinds = [_KINDS.get(str(name).removeprefix(self.name)) for name in names]
        return next((kind for kind in kinds if kind and kind not in self.other_heads), None)

    def known_name(self, name: str) -> str:
        """The name of a tensor without the prefix, and as newer checkpoints have it."""
        name = name.removeprefix(self.prefix)
        for old, new in _OLD_NAMES.items():
            if name.endswith(old):
                return name.removesuffix(old) + new
        return name


_OLD_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}


def head_sizes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an attention layer from those of `Bert`, which checks them."""
    heads = max(arguments["num_heads"], 1)
    key_dim = max(arguments["hidden_dim"] // heads, 1)
    return {"num_heads": heads, "key_dim": key_dim, "dropout": arguments["attention_dropout"]}
