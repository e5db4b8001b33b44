"""Text embedding."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.layers.sequence_pooling import SequencePooling, require_poolings
from keras_attn.ops.contrastive import contrastive_loss
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import in_batches
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled
from keras_attn.tasks.text_task import TextTask
from keras_attn.tasks.texts import (
    FRAME,
    batches_by_length,
    beginning,
    check_framed_length,
    check_texts,
    framed_ids,
    real_ids,
)
from keras_attn.tasks.truncating import TruncatingTask
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import require, require_one_of

_POOLER = "pooler"
_SIGNATURES = ("serving_default", "token_ids", "attention")


class EmbeddingTask(TruncatingTask, TextTask):
    """Embeds texts as vectors.

    A text is put between the tokenizer's start and end tokens (`[CLS]` and `[SEP]` for
    WordPiece), and the vectors of all its tokens, including these two, are pooled.

    Args:
        backbone: A model from `{"token_ids": int32 (batch, length)}` to vectors
            (batch, length, features), such as `keras_attn.models.Bert`.
        tokenizer: Tokenizer of the texts.
        pooling: "mean", "max" or another pooling of `SequencePooling` over the tokens, "first" for
            the vector of the start token, a list of several, or "pooler" for the output of the
            backbone's pooler.
        normalize: Whether to scale vectors to length 1, so that their dot product is the cosine.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        truncate: Whether to truncate longer texts; otherwise they are an error.
        prompts: Texts by name, to put one of them before each text, such as
            `{"query": "query: "}`.
        default_prompt: Name of the prompt where none is asked for; none by default.

    Raises:
        UserError: `pooling` or `default_prompt` is unknown, `max_length` is less than 3 or exceeds
            the model's positions, or the backbone has no pooler.

    Examples:
        >>> tokenizer = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz ")
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> task = EmbeddingTask(Bert(tokenizer.vocabulary_size, **sizes), tokenizer, max_length=32)
        >>> vectors = task.predict(["a cat sat", "a dog ran"])
        >>> cosines = vectors @ vectors.T
        >>> vectors.shape, cosines.shape
        ((2, 8), (2, 2))
    """

    kind = "embedding"
    _saved = ("pooling", "normalize", "max_length", "truncate", "prompts", "default_prompt")
    _saved_later: ClassVar = {"prompts": None, "default_prompt": None}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        pooling: str | Sequence[str] = "mean",
        normalize: bool = True,
        max_length: int = 256,
        truncate: bool = True,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str | None = None,
    ):
        super().__init__(backbone, {"text": tokenizer})
        require_poolings(pooling, [_POOLER])
        prompts = dict(prompts or {})
        for name in prompts:
            require(
                name.isidentifier() and name not in _SIGNATURES,
                "A prompt's name must be an identifier, and not that of a signature of exports.",
                name=name,
            )
        if default_prompt is not None:
            require_one_of("default_prompt", default_prompt, prompts)
        require(
            pooling != _POOLER or getattr(backbone, "pooler", None) is not None,
            "`pooling='pooler'` needs a backbone with a pooler.",
            pooling=pooling,
        )
        if pooling == _POOLER:
            backbone.use_pooler()
        check_framed_length(backbone, max_length)
        self.tokenizer = tokenizer
        self.pooling = pooling if isinstance(pooling, str) else list(pooling)
        self.prompts = prompts
        self.default_prompt = default_prompt
        self.normalize = bool(normalize)
        self.max_length = max_length
        self.truncate = bool(truncate)
        self._pool = None if pooling == _POOLER else SequencePooling(pooling, dtype="float32")
        self._vectors = ModelGraph(backbone, self._embed_texts, [TEXTS], self._settings)

    @property
    def features(self) -> int:
        """Size of a text's vector."""
        shape = self.backbone.output_shape
        if self._pool is None:
            return getattr(self.backbone, "features", shape[-1])
        return self._pool.compute_output_shape(shape)[-1]

    def loss(self, labels: tf.Tensor, vectors: tf.Tensor, label_smoothing: float = 0.0) -> tuple:
        """Sums of the contrastive cross-entropy over pairs of texts (see `contrastive_loss`).

        Args:
            labels: int32 (2 · pairs, length), the number of the text at each of its tokens, 0 at
                padding; first the sources, then their targets.
            vectors: Outputs of the backbone, (2 · pairs, length, features).
            label_smoothing: Fraction of the probability spread over the candidates.
        """
        sources, targets = tf.split(self._pooled(vectors, labels != 0), 2)
        source_numbers, target_numbers = tf.split(tf.reduce_max(labels, axis=1), 2)
        return contrastive_loss(sources, targets, source_numbers, target_numbers, label_smoothing)

    def predict(
        self,
        texts: Sequence[str],
        progress: Callable[[int], None] | None = None,
        prompt: str | None = None,
    ) -> np.ndarray:
        """Embeds texts.

        Args:
            texts: The texts.
            progress: Called with the number of texts done after each batch.
            prompt: Name of the prompt before each text; the default prompt, if there is one, by
                default.

        Returns:
            float32 (texts, features).

        Raises:
            UserError: There is no such prompt, an input is not text, or exceeds the maximum length
                of a task that does not truncate.
        """
        before = self._prompt(prompt)
        texts = [before + text for text in check_texts("texts", texts)]
        if self.truncate:
            texts = [beginning(text, self.max_length) for text in texts]
        batches = batches_by_length(
            self.tokenizer, texts, "text", self.max_length, frame=FRAME, truncate=self.truncate
        )
        rows = in_batches(
            batches,
            lambda batch: [self._vectors(tf.constant(batch)).numpy()],
            texts,
            progress=progress,
        )
        return np.array(rows, np.float32).reshape(len(texts), self.features)

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of texts before they are truncated, start and end included.

        Args:
            texts: The texts, before which the default prompt is put.
        """
        texts = [self._prompt(None) + text for text in texts]
        return (self.tokenizer.tokenize(tf.constant(texts)).row_lengths() + FRAME).numpy().tolist()

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts, with start and end tokens around each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the maximum length, and the task does not truncate.
        """
        return framed_ids(self.tokenizer, texts, self.max_length, "text", self.truncate)

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        del n_best  # a text has one vector
        embed = compiled(self._embed, jit)

        def from_text(name: str | None) -> Callable:
            before = self._prompt(name)

            def embed_texts(text: tf.Tensor) -> dict[str, tf.Tensor]:
                text = tf.strings.join([before, text]) if before else text
                return {"embedding": embed(self.input_ids(text))}

            return embed_texts

        signatures = self._signatures(
            from_text(None), lambda token_ids: {"embedding": embed(real_ids(token_ids))}
        )
        return signatures | {
            name: ServingFunction(from_text(name), {"text": TEXTS}) for name in self.prompts
        }

    def _prompt(self, name: str | None) -> str:
        """The text of a prompt, or of the default one."""
        name = self.default_prompt if name is None else name
        if name is None:
            return ""
        require_one_of("prompt", name, self.prompts)
        return self.prompts[name]

    def _embed_texts(self, texts):
        return self._embed(self.input_ids(texts))

    def vectors_of(self, outputs: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Makes the vectors of texts, as `predict` returns them, of the backbone's outputs.

        Args:
            outputs: Floating (batch, length, features).
            mask: Boolean (batch, length), true where a token is.

        Returns:
            float32 (batch, features).
        """
        pooled = self._pooled(outputs, mask)
        return tf.math.l2_normalize(pooled, axis=1, epsilon=1e-24) if self.normalize else pooled

    def _embed(self, token_ids):
        return self.vectors_of(self.backbone({"token_ids": token_ids}), token_ids != 0)

    def _pooled(self, vectors, mask):
        if self._pool is None:
            return tf.cast(self.backbone.pooled(vectors, mask), tf.float32)
        return self._pool(tf.cast(vectors, tf.float32), mask=mask)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {self.features} features)"
