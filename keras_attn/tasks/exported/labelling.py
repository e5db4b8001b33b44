"""Exported tasks that predict labels, filled texts, tags or vectors."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from keras_attn.data import check_images
from keras_attn.tasks.exported.base import Exported, check_exported
from keras_attn.tasks.hypothesis import Hypothesis, LabelSet, best_text, found_hypotheses
from keras_attn.tasks.image_classification import ImageClassificationTask, image_batches
from keras_attn.tasks.texts import check_texts
from keras_attn.tasks.token_classification import check_one_answer
from keras_attn.validation import require, require_one_of, require_positive


class ExportedClassification(Exported):
    """An exported `ClassificationTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = ClassificationTask(model, CharacterTokenizer("abc"), ["noun", "verb"])
        >>> folder = task.export("exported/demo")
        >>> exported = open_exported("exported/demo")
        >>> exported.predict(["cab", "abba"]) == task.predict(["cab", "abba"])
        True
    """

    kind = "classification"
    needs = frozenset({"n_best"})
    _served_input = "text"
    _column = "label"

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predicts the label of each text (see `ClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the best labels of each text (see `ClassificationTask.predict_n_best`).

        Raises:
            UserError: `beams` is given, a text is too long, or `n_best` exceeds that of the export.
        """
        require_positive(n_best=n_best)
        require(beams is None, "A classifier has no beam search.", beams=beams)
        texts = self._check(texts)

        def columns(outputs):
            check_exported(n_best, outputs[self._column])
            with np.errstate(divide="ignore"):
                scores = np.log(outputs["probability"][:, :n_best])
            return outputs[self._column][:, :n_best], scores, scores

        rows = self._in_batches("n_best", columns, progress, **{self._served_input: texts})
        return [found_hypotheses(*row) for row in rows]

    def _check(self, texts: Sequence[Any]) -> list[Any]:
        return check_texts("texts", texts)


class ExportedMultiLabelClassification(Exported):
    """An exported `MultiLabelClassificationTask`, as `keras_attn.load` returns it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=2)
        >>> task = MultiLabelClassificationTask(model, CharacterTokenizer("abc"), ["good", "long"])
        >>> folder = task.export("exported/demo")
        >>> exported = open_exported("exported/demo")
        >>> exported.predict(["cab", "abba"]) == task.predict(["cab", "abba"])
        True
    """

    kind = "multi_label_classification"
    needs = frozenset({"serving_default"})

    def predict(self, texts: Sequence[str]) -> list[list[str]]:
        """Predicts the labels of each text (see `MultiLabelClassificationTask.predict`)."""
        return [list(found.labels) for found in self.label_sets(texts)]

    def label_sets(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[LabelSet]:
        """Predicts labels with their probabilities (see the task's `label_sets`)."""
        texts = check_texts("texts", texts)
        columns = itemgetter("labels", "probabilities", "predicted")
        rows = self._in_batches("serving_default", columns, progress, text=texts)
        return [_label_set(*row) for row in rows]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the most probable labels (see `ClassificationTask.predict_n_best`).

        Raises:
            UserError: `beams` is given, a text is too long, or there are fewer labels.
        """
        require_positive(n_best=n_best)
        require(beams is None, "A classifier has no beam search.", beams=beams)
        rows = []
        for found in self.label_sets(texts, progress):
            ranked = list(found.probabilities.items())
            require(
                n_best <= len(ranked),
                "`n_best` must not exceed the number of labels.",
                n_best=n_best,
                labels=len(ranked),
            )
            with np.errstate(divide="ignore"):
                rows.append(
                    [Hypothesis(label, *[float(np.log(p))] * 2) for label, p in ranked[:n_best]]
                )
        return rows


def _label_set(labels: np.ndarray, probabilities: np.ndarray, predicted: np.ndarray) -> LabelSet:
    names = [label.decode(errors="replace") for label in labels]
    chosen = tuple(name for name, is_chosen in zip(names, predicted, strict=True) if is_chosen)
    return LabelSet(chosen, dict(zip(names, probabilities.tolist(), strict=True)))


class ExportedRegression(Exported):
    """An exported `RegressionTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(TransformerEncoder(7, **sizes), num_classes=1)
        >>> task = RegressionTask(model, CharacterTokenizer("abc"), ["price"], [40.0], [8.0])
        >>> folder, texts = task.export("exported/demo"), ["cab", "abba"]
        >>> bool(np.allclose(open_exported("exported/demo").predict(texts), task.predict(texts)))
        True
    """

    kind = "regression"
    needs = frozenset({"serving_default"})

    def predict(
        self, texts: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """Predicts the numbers of texts (see `RegressionTask.predict`)."""
        texts = check_texts("texts", texts)
        signature = self._model.signatures["serving_default"]
        columns = signature.structured_outputs["numbers"].shape[1]
        found = self._in_batches(
            "serving_default", lambda outputs: [outputs["numbers"]], progress, text=texts
        )
        rows = np.array(found, np.float32).reshape(len(texts), columns)
        return rows[:, 0] if columns == 1 else rows


class ExportedImageClassification(ExportedClassification):
    """An exported `ImageClassificationTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = SequenceClassifier(PatchEncoder(8, 4, channels=1, **sizes), num_classes=2)
        >>> task = ImageClassificationTask(model, ["cat", "dog"])
        >>> folder = task.export("exported/demo")
        >>> images = load_digits()["test"].sources[:2]
        >>> open_exported("exported/demo").predict(images) == task.predict(images)
        True
    """

    kind = ImageClassificationTask.kind
    _served_input = ImageClassificationTask.served_input

    def _check(self, texts):
        return check_images(texts)

    def _batches(self, inputs):
        return image_batches(inputs)


class ExportedMaskedLM(ExportedClassification):
    """An exported `MaskedLMTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = MaskedLanguageModel(Bert(len(tokens), **sizes))
        >>> task = MaskedLMTask(model, WordPieceTokenizer(tokens), max_length=8)
        >>> folder, texts = task.export("exported/demo", n_best=1), ["the [MASK] sat"]
        >>> open_exported("exported/demo").predict(texts) == task.predict(texts)
        True
    """

    kind = "masked_lm"
    _column = "text"


class ExportedTokenClassification(Exported):
    """An exported `TokenClassificationTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = TokenClassifier(Bert(tokenizer.vocabulary_size, **sizes), num_classes=2)
        >>> task = TokenClassificationTask(model, tokenizer, ["NOUN", "VERB"], max_length=32)
        >>> folder, texts = task.export("exported/demo"), ["dogs run"]
        >>> open_exported("exported/demo").predict(texts) == task.predict(texts)
        True
    """

    kind = "token_classification"
    needs = frozenset({"token_ids"})
    _frame = 2

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Predicts the tags of each text (see `TokenClassificationTask.predict`)."""
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int = 1,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Predicts the tags of each text (see `TokenClassificationTask.predict_n_best`).

        Raises:
            UserError: A text is too long, or `n_best` or `beams` is invalid.
        """
        check_one_answer(n_best, beams)

        def columns(outputs):
            score = outputs["log_probability"][:, None]
            return outputs["tags"][:, None], score, score

        texts = check_texts("texts", texts)
        rows = self._in_batches("serving_default", columns, progress, text=texts)
        return [found_hypotheses(*row) for row in rows]


class ExportedEmbedding(Exported):
    """An exported `EmbeddingTask`, as `open_exported` and `keras_attn.load` return it.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
        >>> folder = task.export("exported/demo")
        >>> open_exported("exported/demo").predict(["a cat sat", "a dog ran"]).shape
        (2, 8)
    """

    kind = "embedding"
    needs = frozenset({"token_ids"})
    _frame = 2

    def predict(
        self,
        texts: Sequence[str],
        progress: Callable[[int], None] | None = None,
        prompt: str | None = None,
    ) -> np.ndarray:
        """Embeds texts (see `EmbeddingTask.predict`)."""
        texts = check_texts("texts", texts)
        others = set(self._model.signatures) - {"serving_default", "token_ids", "attention"}
        if prompt is not None:
            require_one_of("prompt", prompt, sorted(others))
        name = prompt or "serving_default"
        features = self._model.signatures[name].structured_outputs["embedding"].shape[1]
        rows = self._in_batches(name, lambda outputs: [outputs["embedding"]], progress, text=texts)
        return np.array(rows, np.float32).reshape(len(texts), features)
