"""Conversion of Hugging Face's heads of BERT: labels, numbers and masked language modeling."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras_attn.convert.files.safetensors_folder import SafetensorsFolder
from keras_attn.convert.files.weight_map import WeightMap
from keras_attn.models import MaskedLanguageModel
from keras_attn.tasks import (
    ClassificationTask,
    MultiLabelClassificationTask,
    RegressionTask,
    Task,
)
from keras_attn.tasks.rank import ACTIVATIONS
from keras_attn.validation import require, require_one_of

MASKED_HEAD = "cls.predictions."
_EMBEDDING = "embeddings.word_embeddings.weight"
# What heads of texts compute, by `problem_type`.
_TASKS = {
    "single_label_classification": ClassificationTask,
    "multi_label_classification": MultiLabelClassificationTask,
    "regression": RegressionTask,
}


class MaskedHead(NamedTuple):
    """Names of the modules of a head of masked language modeling.

    Attributes:
        prefixes: Beginnings of all names.
        transform: The dense layer.
        norm: The normalization.
        bias: The tensor with a number for each token.
        decoder: The output projection, a copy of the embedding.
    """

    prefixes: tuple[str, ...]
    transform: str
    norm: str
    bias: str
    decoder: str

    @classmethod
    def below(cls, prefix: str, transform: str = "dense", norm: str = "layer_norm") -> "MaskedHead":
        """The modules of one with a bias and a decoder of that name.

        Args:
            prefix: Beginning of all names.
            transform: The dense layer, behind the prefix.
            norm: The normalization, behind the prefix.
        """
        names = (prefix + transform, prefix + norm, f"{prefix}bias", f"{prefix}decoder")
        return cls((prefix,), *names)


BERT_HEAD = MaskedHead.below(MASKED_HEAD, "transform.dense", "transform.LayerNorm")
"""The names of BERT."""


def map_masked_head(
    weights: WeightMap,
    model: MaskedLanguageModel,
    tensors: SafetensorsFolder | None = None,
    rename: Callable[[str], str] = lambda name: name,
    names: MaskedHead = BERT_HEAD,
    rows: Sequence[int] | None = None,
    embedding: str = _EMBEDDING,
) -> None:
    """Maps the weights of a head of masked language modeling.

    Args:
        weights: The weight map; the caller maps the weights of the encoder.
        model: The model.
        tensors: The checkpoint, if one is read, whose copies of tensors are compared.
        rename: Converts a tensor's name to its name in the map.
        names: Names of its modules.
        rows: The checkpoint's id of each of our tokens; the same by default.
        embedding: The tensor of embedded tokens.

    Raises:
        UserError: The output projection is not a copy of the embedding, or the biases differ.
    """
    bias, decoder = names.bias, names.decoder
    rows = range(model.bias.bias.shape[0]) if rows is None else rows
    weights.copy_linear(model.transform, names.transform)
    weights.copy_norm(model.norm, names.norm)
    weights.copy_rows(model.bias.bias, bias, rows)
    if tensors is None:
        return
    original = {rename(name): name for name in tensors.shapes}
    # Second copies in older checkpoints.
    for again, first in {f"{decoder}.weight": embedding, f"{decoder}.bias": bias}.items():
        if again == first:
            continue
        weights.ignore(re.escape(again))
        if again in original and first in original:
            tensors.require_same(original[again], original[first])


def kind_of_texts(config: dict[str, Any], labels: Sequence[str]) -> type[Task]:
    """The task of a classifier of texts, by its `problem_type`.

    Args:
        config: The configuration.
        labels: The labels.

    Raises:
        UserError: The `problem_type` is unknown.
    """
    problem = config.get("problem_type") or "single_label_classification"
    require_one_of("problem_type", problem, _TASKS)
    return _TASKS[problem]


def is_reranker(config: dict[str, Any], labels: Sequence[str]) -> bool:
    """Whether a classifier of texts scores pairs: it has one output, and no `problem_type`.

    Args:
        config: The configuration.
        labels: The labels.
    """
    return len(labels) == 1 and (
        config.get("problem_type") is None or _activation_of(config) is not None
    )


def score_activation(config: dict[str, Any]) -> str:
    """The activation of a reranker, as sentence-transformers saves it; a sigmoid by default.

    Args:
        config: The configuration.

    Raises:
        UserError: It is neither a sigmoid nor the identity.
    """
    name = str(_activation_of(config) or "Sigmoid").rpartition(".")[2].lower()
    require_one_of("activation_fn", name, ACTIVATIONS)
    return name


def written_activation_of_scores(name: str) -> dict[str, Any]:
    """Keys of the configuration of a reranker: the inverse of `score_activation`.

    Args:
        name: The activation.
    """
    modules = {"sigmoid": "activation.Sigmoid", "identity": "linear.Identity"}
    return {"sentence_transformers": {"activation_fn": f"torch.nn.modules.{modules[name]}"}}


def _activation_of(config: dict[str, Any]) -> Any:
    of_now = config.get("sentence_transformers")
    of_now = of_now.get("activation_fn") if isinstance(of_now, dict) else None
    return of_now or config.get("sbert_ce_default_activation_function")


def label_names(config: dict[str, Any]) -> list[str]:
    """Reads the labels in the order of their numbers; by default those of transformers.

    Args:
        config: The configuration.

    Raises:
        UserError: `id2label` does not have the numbers 0, 1, 2 and so on.
    """
    names = config.get("id2label")
    if names is None:
        count = config.get("num_labels") or 2
        return [f"LABEL_{number}" for number in range(count)]
    numbers = sorted(map(str, range(len(names))))
    require(sorted(names) == numbers, "`id2label` must have the numbers 0, 1, 2 …", id2label=names)
    return [names[str(number)] for number in range(len(names))]
