"""Exported tasks, used like the tasks themselves."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

# Registers the ops that a SavedModel with tokenizers needs.
import tensorflow_text  # noqa: F401

from keras_attn.generation import SamplingRules, check_seed
from keras_attn.model_versions import latest_version
from keras_attn.tasks.hypothesis import (
    COLUMNS,
    Hypothesis,
    best_text,
    hypotheses_in_batches,
    length_sorted_batches,
    perplexity_of,
)
from keras_attn.tasks.image_classification import ImageClassificationTask, image_batches
from keras_attn.tasks.texts import check_pairs, check_texts, shortened
from keras_attn.tasks.token_classification import check_one_answer
from keras_attn.validation import UserError, require, require_one_of, require_positive


def open_exported(folder: str | Path) -> "Exported":
    """Opens a SavedModel that `keras_attn.export` wrote, as what it was exported from.

    Args:
        folder: A version folder (it holds `saved_model.pb`), or a model folder, of which the
            highest version is taken.

    Returns:
        The exported task.

    Raises:
        UserError: The folder holds no SavedModel, a damaged one, or one of something else.
    """
    folder = latest_version(folder)
    model = _load(folder)
    outputs = model.signatures["serving_default"].structured_outputs
    kinds = {
        "label": ExportedClassification,
        "embedding": ExportedEmbedding,
        "tags": ExportedTokenClassification,
        "probability": ExportedMaskedLM,
    }
    generating = ExportedCausalLM if "sample" in model.signatures else ExportedSeq2Seq
    kind = next((kinds[name] for name in kinds if name in outputs), generating)
    if kind is ExportedClassification and "pixels" in model.signatures:
        kind = ExportedImageClassification
    return kind(folder, model)


def _load(folder: Path) -> Any:
    try:
        model = tf.saved_model.load(str(folder))
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:  # Index: cut short
        first_line = str(error).strip().splitlines()[0]
        raise UserError(f"{folder} is a damaged SavedModel: {first_line}") from error
    _require_signatures(folder, model, {"serving_default"})
    return model


def _require_signatures(folder: Path, model: Any, names: set[str]) -> None:
    missing = names - set(model.signatures)
    require(
        not missing,
        "The SavedModel must be an exported task.",
        folder=str(folder),
        missing_signatures=sorted(missing),
    )


class ExportedSeq2Seq:
    """Runs a SavedModel that `keras_attn.export` wrote from a task that generates.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "seq2seq"

    def __init__(self, folder: Path, model: Any):
        _require_signatures(folder, model, {"n_best", "score"})
        self.folder = folder
        self._model = model

    def predict(self, texts: Sequence[str], beams: int | None = None) -> list[str]:
        """Generates a text for each text (see `Seq2SeqTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1, beams)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text (see `Seq2SeqTask.predict_n_best`).

        Raises:
            UserError: `beams` or `prefixes` are given, for an exported model's search is fixed; a
                text is too long; or `n_best` exceeds what was exported.
        """
        require_positive(n_best=n_best)
        require(prefixes is None, "An exported model takes no prefixes.", prefixes=prefixes)
        texts = check_texts("texts", texts)
        require(beams is None, "The beams of an exported model cannot be changed.", beams=beams)
        signature = self._model.signatures["serving_default" if n_best == 1 else "n_best"]

        def columns(positions):
            outputs = _run(signature, text=[texts[position] for position in positions])
            columns = [outputs[name] for name in COLUMNS]
            if n_best == 1:
                columns = [column[:, None] for column in columns]
            _check_exported(n_best, columns[0])
            return [column[:, :n_best] for column in columns]

        batches = length_sorted_batches([len(text) + 1 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)

    def sample(
        self,
        texts: Sequence[str],
        samples: int = 1,
        seed: int = 0,
        first_number: int = 0,
        progress: Callable[[int], None] | None = None,
        **settings: Any,
    ) -> list[list[Hypothesis]]:
        """Draws a text for each text at random (see `CausalLMTask.sample`).

        The same seed gives the texts that the task gives. `settings` are `temperature`, `top_k`
        and `top_p`; what is not given is 1, no limit and 1.

        Raises:
            UserError: It is no export of a language model, `samples` is not 1, there are other
                settings, or a text is too long.
        """
        require(
            "sample" in self._model.signatures,
            "Only the export of a language model draws texts: use the run or the task folder.",
            folder=str(self.folder),
        )
        require(samples == 1, "A SavedModel draws one text at a time.", samples=samples)
        names = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        for name in settings:
            require_one_of("setting", name, names)
        values = names | {name: value for name, value in settings.items() if value is not None}
        SamplingRules(**values)
        check_seed(seed)
        texts = check_texts("texts", texts)

        def columns(positions):
            outputs = _run(
                self._model.signatures["sample"],
                text=[texts[position] for position in positions],
                seed=[seed + ((position + first_number) << 32) for position in positions],
                **{name: [value] * len(positions) for name, value in values.items()},
            )
            return [outputs[name][:, None] for name in COLUMNS]

        batches = length_sorted_batches([len(text) + 1 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Log-probability of each target (see `Seq2SeqTask.score`)."""
        return [log_probability for log_probability, _ in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Perplexity of the targets for each token, end tokens included."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        results: list[tuple[float, int]] = [(0.0, 0)] * len(sources)
        for positions in length_sorted_batches([len(text) + 1 for text in sources], budget=4096):
            outputs = _run(
                self._model.signatures["score"],
                text=[sources[position] for position in positions],
                target=[targets[position] for position in positions],
            )
            rows = zip(outputs["log_probability"], outputs["length"], strict=True)
            for position, (log_probability, length) in zip(positions, rows, strict=True):
                results[position] = (float(log_probability), int(length))
        return results


class ExportedCausalLM(ExportedSeq2Seq):
    """Runs a SavedModel that `keras_attn.export` wrote from a `CausalLMTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "lm"

    def text_perplexity(self, texts: Sequence[str]) -> float:
        """Perplexity of whole texts for each token, end tokens included.

        Raises:
            UserError: A text is longer than the model's maximum.
        """
        texts = check_texts("texts", texts)
        try:
            return self.perplexity([""] * len(texts), texts)
        except UserError as error:
            hint = "The run or the task folder measures longer texts, in pieces."
            raise UserError(f"{error} {hint}") from error


class ExportedClassification:
    """Runs a SavedModel that `keras_attn.export` wrote from a `ClassificationTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "classify"
    _served_input = "text"
    _column = "label"

    def __init__(self, folder: Path, model: Any):
        _require_signatures(folder, model, {"n_best"})
        self.folder = folder
        self._model = model

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Gives each text its most probable label (see `ClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Gives each text its most probable labels (see `ClassificationTask.predict_n_best`).

        Raises:
            UserError: `beams` is given; a text is too long; or `n_best` exceeds what was exported.
        """
        require_positive(n_best=n_best)
        require(beams is None, "Such a model makes no beam search.", beams=beams)
        texts, batches = self._batches(texts)

        def columns(positions):
            inputs = {self._served_input: [texts[position] for position in positions]}
            outputs = _run(self._model.signatures["n_best"], **inputs)
            _check_exported(n_best, outputs[self._column])
            with np.errstate(divide="ignore"):
                scores = np.log(outputs["probability"][:, :n_best])
            return outputs[self._column][:, :n_best], scores, scores

        return hypotheses_in_batches(batches, columns, progress)

    def _batches(self, texts: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
        """What was given, found to be right, and for each batch the positions of those in it."""
        texts = check_texts("texts", texts)
        return texts, length_sorted_batches([len(text) + 1 for text in texts], budget=4096)


class ExportedImageClassification(ExportedClassification):
    """Runs a SavedModel that `keras_attn.export` wrote from an `ImageClassificationTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = ImageClassificationTask.kind
    _served_input = ImageClassificationTask.served_input

    def _batches(self, texts: Sequence[Any]) -> tuple[list[Any], list[list[int]]]:
        return image_batches(texts)


class ExportedMaskedLM(ExportedClassification):
    """Runs a SavedModel that `keras_attn.export` wrote from a `MaskedLMTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "mlm"
    _column = "text"


class ExportedTokenClassification:
    """Runs a SavedModel that `keras_attn.export` wrote from a `TokenClassificationTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "tag"

    def __init__(self, folder: Path, model: Any):
        _require_signatures(folder, model, {"token_ids"})
        self.folder = folder
        self._model = model

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Gives each text the tags of its words (see `TokenClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int = 1,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Gives each text its tags (see `TokenClassificationTask.predict_n_best`).

        Raises:
            UserError: A text is too long, or `n_best` or `beams` are not as they must be.
        """
        check_one_answer(n_best, beams)
        texts = check_texts("texts", texts)
        signature = self._model.signatures["serving_default"]

        def columns(positions):
            outputs = _run(signature, text=[texts[position] for position in positions])
            score = outputs["log_probability"][:, None]
            return outputs["tags"][:, None], score, score

        batches = length_sorted_batches([len(text) + 2 for text in texts], budget=4096)
        return hypotheses_in_batches(batches, columns, progress)


class ExportedEmbedding:
    """Runs a SavedModel that `keras_attn.export` wrote from an `EmbeddingTask`.

    Args:
        folder: Its version folder.
        model: What is loaded from there.

    Raises:
        UserError: It is an export of something else.
    """

    kind = "embed"

    def __init__(self, folder: Path, model: Any):
        _require_signatures(folder, model, {"token_ids"})
        self.folder = folder
        self._model = model

    def predict(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Gives each text its vector (see `EmbeddingTask.predict`)."""
        signature = self._model.signatures["serving_default"]
        texts = check_texts("texts", texts)
        features = signature.structured_outputs["embedding"].shape[1]
        results = np.zeros((len(texts), features), np.float32)
        for positions in length_sorted_batches([len(text) + 2 for text in texts], budget=4096):
            outputs = _run(signature, text=[texts[position] for position in positions])
            results[positions] = outputs["embedding"]
            if progress:
                progress(len(positions))
        return results


Exported = (
    ExportedSeq2Seq
    | ExportedCausalLM
    | ExportedClassification
    | ExportedImageClassification
    | ExportedEmbedding
    | ExportedMaskedLM
    | ExportedTokenClassification
)


def _check_exported(n_best: int, column: np.ndarray) -> None:
    require(
        n_best <= column.shape[1],
        "`n_best` must not exceed what was exported.",
        n_best=n_best,
        exported=column.shape[1],
    )


def _run(signature: Any, **inputs: list) -> dict[str, np.ndarray]:
    specs = signature.structured_input_signature[1]
    try:
        outputs = signature(
            **{name: tf.constant(values, specs[name].dtype) for name, values in inputs.items()}
        )
    except tf.errors.InvalidArgumentError as error:
        rows = len(next(iter(inputs.values())))
        if rows > 1:  # the one that is refused names itself
            for row in range(rows):
                _run(signature, **{name: [values[row]] for name, values in inputs.items()})
        # An assertion's message and values come in brackets.
        found = re.search(r"assertion failed: \[(.*?)\] \[(.*?)\]", str(error))
        line = " ".join(found.groups()) + " tokens" if found else str(error).splitlines()[0]
        texts = [values[0] for values in inputs.values() if isinstance(values[0], str)]
        shown = ", ".join(repr(shortened(text)) for text in texts)
        shown = f" in {shown}" if rows == 1 and shown else ""
        raise UserError(f"{line}{shown}.") from error
    return {name: value.numpy() for name, value in outputs.items()}
