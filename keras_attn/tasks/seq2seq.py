"""Text to text with an encoder-decoder: translation, letters to phonemes."""

import functools
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from keras_attn.generation import Hypotheses, beam_search, greedy_search
from keras_attn.tasks.base import Task
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.hypothesis import (
    Hypothesis,
    best_text,
    found_hypotheses,
    length_sorted_batches,
    perplexity_of,
)
from keras_attn.tasks.serving import ServingFunction
from keras_attn.tasks.texts import check_pairs, check_texts
from keras_attn.tokenizers import Tokenizer
from keras_attn.validation import UserError, require, require_positive

_TEXTS = tf.TensorSpec([None], tf.string)
_IDS = tf.TensorSpec([None, None], tf.int32)


class Seq2SeqTask(Task):
    """Turns texts into texts.

    Args:
        backbone: An encoder-decoder with the step protocol, as `keras_attn.models.Transformer`.
        source_tokenizer: Tokenizer of the texts that go in.
        target_tokenizer: Tokenizer of the texts that come out.
        decoding: How the task generates.

    Raises:
        UserError: The decoding lengths exceed the model's positions, or a tokenizer does not pad
            with id 0 or has one id for start and end, as that of GPT-2's own vocabulary.
    """

    kind = "seq2seq"

    def __init__(
        self,
        backbone: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingSettings | None = None,
    ):
        tokenizers = {"source": source_tokenizer, "target": target_tokenizer}
        super().__init__(backbone, tokenizers, decoding)
        positions = getattr(backbone, "max_length", None)
        require(
            positions is None
            or max(self.decoding.max_source_length, self.decoding.max_length) <= positions,
            "The decoding lengths must not exceed the model's positions.",
            positions=positions,
            max_source_length=self.decoding.max_source_length,
            max_length=self.decoding.max_length,
        )
        for tokenizer in (source_tokenizer, target_tokenizer):
            require(
                tokenizer.pad_id == 0 and tokenizer.start_id != tokenizer.end_id,
                "A tokenizer must pad with id 0 and tell the start from the end.",
                pad_id=tokenizer.pad_id,
                start_id=tokenizer.start_id,
                end_id=tokenizer.end_id,
            )
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self._functions: dict = {}

    @classmethod
    def _from_parts(cls, backbone, tokenizers, decoding):
        return cls(backbone, tokenizers["source"], tokenizers["target"], decoding)

    def predict(self, texts: Sequence[str], beams: int | None = None) -> list[str]:
        """Generates a text for each text.

        Args:
            texts: The sources.
            beams: Width of the beam search; the task's own by default, 1 is greedy search.

        Returns:
            The most probable texts found.

        Raises:
            UserError: A text is longer than the task's maximum, or no text at all.
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1, beams)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Generates several hypotheses for each text.

        Args:
            texts: The sources.
            n_best: Number of hypotheses for each, at most `beams`.
            beams: Width of the beam search; the task's own by default.
            progress: Called with the number of texts done after each batch.

        Returns:
            For each text its hypotheses, the best first; there are fewer than `n_best` where the
            model has no more.

        Raises:
            UserError: A text is longer than the task's maximum, or `n_best` exceeds `beams`.
        """
        decoding = self.decoding.replace(beams=beams)
        _check_n_best(n_best, decoding)
        texts = check_texts("texts", texts)
        generate = self._function(("generate", decoding, n_best), _TEXTS)
        results: list[list[Hypothesis]] = [[] for _ in texts]
        longest = self.decoding.max_source_length
        for positions in _batches(self.source_tokenizer, texts, "source", longest):
            outputs = generate(tf.constant([texts[position] for position in positions]))
            columns = (outputs[name].numpy() for name in ("text", "score", "log_probability"))
            for position, row in zip(positions, zip(*columns, strict=True), strict=True):
                results[position] = found_hypotheses(*row)
            if progress:
                progress(len(positions))
        return results

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Computes how probable given targets are.

        Args:
            sources: The texts that go in.
            targets: A text for each.

        Returns:
            For each pair the natural logarithm of the target's probability, its end token
            included.

        Raises:
            UserError: The numbers of texts differ, or a text is longer than the task's maximum.
        """
        return [result[0] for result in self._scores(sources, targets)]

    def perplexity(self, sources: Sequence[str], targets: Sequence[str]) -> float:
        """Perplexity of the targets for each token, end tokens included."""
        return perplexity_of(self._scores(sources, targets))

    def _scores(self, sources, targets) -> list[tuple[float, int]]:
        sources, targets = check_pairs(sources, targets)
        _batches(self.target_tokenizer, targets, "target", self.decoding.max_length)
        score = self._function(("score",), _TEXTS, _TEXTS)
        results: list[tuple[float, int]] = [(0.0, 0)] * len(sources)
        longest = self.decoding.max_source_length
        for positions in _batches(self.source_tokenizer, sources, "source", longest):
            outputs = score(
                tf.constant([sources[position] for position in positions]),
                tf.constant([targets[position] for position in positions]),
            )
            columns = (outputs[name].numpy() for name in ("log_probability", "length"))
            for position, row in zip(positions, zip(*columns, strict=True), strict=True):
                results[position] = (float(row[0]), int(row[1]))
        return results

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Gives the functions that an exported task serves (see `keras_attn.tasks.serving`)."""
        _check_n_best(n_best, self.decoding)

        def best(text):
            outputs = self._generate_texts(text, self.decoding, 1, jit)
            return {name: values[:, 0] for name, values in outputs.items()}

        def several(text):
            return self._generate_texts(text, self.decoding, n_best, jit)

        def score(text, target):
            return self._score_texts(text, target, jit)

        def token_ids(source_ids):
            found = self._search(jit)(source_ids, self.decoding, 1)
            return {"token_ids": found.token_ids[:, 0], "score": found.scores[:, 0]}

        return {
            "serving_default": ServingFunction(best, {"text": _TEXTS}),
            "n_best": ServingFunction(several, {"text": _TEXTS}),
            "score": ServingFunction(
                score,
                {"text": _TEXTS, "target": _TEXTS},
                lambda texts: {"text": texts, "target": self.predict(texts, beams=1)},
            ),
            "token_ids": ServingFunction(
                token_ids,
                {"source_ids": _IDS},
                lambda texts: {"source_ids": self.source_ids(tf.constant(texts))},
            ),
        }

    def example_texts(self) -> list[str]:
        """Gives a few texts of unequal lengths, made of the commonest source tokens."""
        tokenizer = self.source_tokenizer
        special = (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id, tokenizer.unknown_id)
        first = max(special) + 1
        longest = min(self.decoding.max_source_length - 1, tokenizer.vocabulary_size - first)
        rows = [range(first, first + min(length, longest)) for length in (5, 1, 9)]
        texts = tokenizer.detokenize(tf.ragged.constant([list(row) for row in rows], tf.int32))
        return [text.decode() for text in texts.numpy()]

    def resources(self) -> list:
        """Gives all that the serving functions use."""
        return [self.source_tokenizer, self.target_tokenizer, *self.backbone.variables]

    def source_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Turns texts into ids, an end id after each and 0 as padding.

        Args:
            texts: Strings (batch,).

        Returns:
            int32 (batch, source).

        Raises:
            InvalidArgumentError: A text is longer than the task's maximum.
        """
        return _with_end(
            self.source_tokenizer, texts, self.decoding.max_source_length, "The source text"
        )

    def _generate_texts(self, texts, decoding, n_best, jit=False) -> dict:
        found = self._search(jit)(self.source_ids(texts), decoding, n_best)
        ids = tf.reshape(found.token_ids, [-1, decoding.max_length])
        return {
            "text": tf.reshape(self.target_tokenizer.detokenize(ids), [-1, n_best]),
            "score": found.scores,
            "log_probability": found.log_probabilities,
        }

    def _search(self, jit=False) -> Callable[..., Hypotheses]:
        def search(source_ids, decoding, n_best):
            tokenizer = self.target_tokenizer
            settings = {
                "start_id": tokenizer.start_id,
                "end_id": tokenizer.end_id,
                "max_length": decoding.max_length,
                "min_length": decoding.min_length,
                "length_penalty": decoding.length_penalty,
                "forbidden_ids": (tokenizer.pad_id, tokenizer.start_id, tokenizer.unknown_id),
            }
            # XLA needs the sizes of what a loop carries to be known.
            room = decoding.max_length if jit else None
            state = self.backbone.initial_state(source_ids, room, decoding.beams)
            if decoding.beams == 1:
                return greedy_search(self.backbone.step, state, **settings)
            return beam_search(self.backbone.step, state, decoding.beams, n_best=n_best, **settings)

        # Strings cannot be compiled: XLA gets what lies between the tokenizers.
        return tf.function(search, jit_compile=True, autograph=False) if jit else search

    def _score_texts(self, texts, targets, jit=False) -> dict:
        def log_probabilities(source_ids, target_ids, labels):
            logits = self.backbone({"source_ids": source_ids, "target_ids": target_ids})
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, tf.cast(logits, tf.float32)
            )
            return -tf.reduce_sum(tf.where(labels != 0, losses, 0.0), axis=1)

        if jit:
            log_probabilities = tf.function(log_probabilities, jit_compile=True, autograph=False)
        labels = _with_end(
            self.target_tokenizer, targets, self.decoding.max_length, "The target text"
        )
        start = tf.fill([tf.shape(labels)[0], 1], self.target_tokenizer.start_id)
        inside = tf.where(labels == self.target_tokenizer.end_id, 0, labels)
        target_ids = tf.concat([start, inside[:, :-1]], axis=1)
        return {
            "log_probability": log_probabilities(self.source_ids(texts), target_ids, labels),
            "length": tf.reduce_sum(tf.cast(labels != 0, tf.int32), axis=1),
        }

    def _function(self, key: tuple, *specs: tf.TensorSpec) -> Callable:
        if key not in self._functions:
            if key[0] == "generate":
                _, decoding, n_best = key
                function = functools.partial(self._generate_texts, decoding=decoding, n_best=n_best)
            else:
                function = self._score_texts
            self._functions[key] = tf.function(
                function, input_signature=list(specs), autograph=False
            )
        return self._functions[key]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone).__name__}, {self.decoding})"


def _check_n_best(n_best: int, decoding: DecodingSettings) -> None:
    require_positive(n_best=n_best)
    require(
        n_best <= decoding.beams,
        "`n_best` must not exceed the beams.",
        n_best=n_best,
        beams=decoding.beams,
    )


def _batches(tokenizer: Tokenizer, texts: list[str], what: str, longest: int) -> list[list[int]]:
    """Positions of texts of similar lengths, after a look at whether none is too long."""
    if not texts:
        return []
    lengths = (tokenizer.tokenize(tf.constant(texts)).row_lengths() + 1).numpy().tolist()
    for text, length in zip(texts, lengths, strict=True):
        if length > longest:
            shown = text if len(text) <= 40 else text[:40] + "…"
            raise UserError(
                f"A {what} text must have at most {longest - 1} tokens. "
                f"Received: {length - 1} tokens in {shown!r}."
            )
    return length_sorted_batches(lengths, budget=4096)


def _with_end(tokenizer: Tokenizer, texts, max_length: int, what: str) -> tf.Tensor:
    ids = tokenizer.tokenize(texts)
    longest = tf.reduce_max(tf.concat([[0], tf.cast(ids.row_lengths(), tf.int32)], axis=0))
    fits = tf.debugging.Assert(
        longest < max_length,
        [f"{what} must have at most {max_length - 1} tokens. Received:", longest],
    )
    with tf.control_dependencies([] if fits is None else [fits]):
        end = tf.fill([ids.nrows(), 1], tf.constant(tokenizer.end_id, ids.dtype))
        return tf.concat([ids, end], axis=1).to_tensor(default_value=tokenizer.pad_id)
