"""Filling of masked tokens."""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import MaskedExamples, Masking, require_mask_token
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import Hypothesis, best_text, found_hypotheses, in_batches
from keras_attn.tasks.measuring.token_losses import token_scores
from keras_attn.tasks.serving import TEXTS, ServingFunction, compiled, first_and_numbers
from keras_attn.tasks.text_task import TextTask
from keras_attn.tasks.texts import (
    FRAME,
    batches_by_length,
    check_framed_length,
    check_texts,
    example_texts,
    padded,
    real_ids,
)
from keras_attn.tokenizers import Tokenizer
from keras_attn.tokenizers.base import MASK
from keras_attn.tokenizers.word_piece import CONTINUED
from keras_attn.validation import require, require_positive


class MaskedLMTask(TextTask):
    """Fills the gaps of texts, each written as `[MASK]` or as the tokenizer's own mask token.

    Each gap is filled with one token, independently of the others: the probability of a filled text
    is the product over its gaps. A piece inside a word is joined to the word before it, as is a
    token without a space of its own where those before a gap belong to it (as in RoBERTa). The rest
    of a text is unchanged; a text without a gap is returned as it is, with a probability of 1.

    Args:
        backbone: A model from token ids and positions to logits, such as
            `keras_attn.models.MaskedLanguageModel`.
        tokenizer: Tokenizer of the texts, with a mask token.
        max_length: Maximum number of tokens of a text, including start and end tokens.

    Raises:
        UserError: The tokenizer has no mask token, or `max_length` is less than 3 or exceeds the
            model's positions.

    Examples:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = MaskedLanguageModel(Bert(len(tokens), **sizes))
        >>> model.compile(keras.optimizers.Adam(0.01), TokenCrossEntropy())
        >>> inputs = {"token_ids": np.array([[2, 5, 4, 7, 3]]), "positions": np.array([[2]])}
        >>> losses = [model.train_on_batch(inputs, np.array([[6]])) for update in range(100)]
        >>> task = MaskedLMTask(model, WordPieceTokenizer(tokens), max_length=16)
        >>> task.predict(["the [MASK] sat"])
        ['the cat sat']
    """

    kind = "masked_lm"
    _saved = ("max_length",)

    def __init__(self, backbone: keras.Model, tokenizer: Tokenizer, max_length: int = 256):
        super().__init__(backbone, {"text": tokenizer})
        check_framed_length(backbone, max_length)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self._mask = tokenizer.id_to_token(require_mask_token(tokenizer))
        self._ordinary = ~tokenizer.is_special
        self._filled = ModelGraph(
            backbone, self._fill, [TEXTS, tf.TensorSpec([], tf.int32)], self._settings
        )

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Fills the gaps of each text with their most probable tokens.

        Raises:
            UserError: An input is not text, or exceeds the task's maximum length.
        """
        return [best_text(hypotheses) for hypotheses in self.predict_n_best(texts, 1)]

    def predict_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        beams: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Fills the gaps of each text in the most probable ways.

        Args:
            texts: The texts.
            n_best: Number of ways for each.
            beams: Must be `None`: gaps are filled without a beam search.
            progress: Called with the number of texts done after each batch.

        Returns:
            For each text the filled texts with their log-probabilities, the most probable first;
            fewer than `n_best` if there are no more.

        Raises:
            UserError: A text exceeds the task's maximum length, `n_best` exceeds the number of
                tokens, or `beams` is given.
        """
        require_positive(n_best=n_best)
        require(beams is None, "Gaps are filled without a beam search.", beams=beams)
        require(
            n_best <= self._ordinary.sum(),
            "`n_best` must not exceed the number of tokens.",
            n_best=n_best,
            tokens=int(self._ordinary.sum()),
        )
        texts = [text.replace(MASK, self._mask) for text in check_texts("texts", texts)]

        def fill(batch):
            filled, scores = self._filled(tf.constant(batch), n_best)
            return filled.numpy(), scores.numpy(), scores.numpy()

        batches = batches_by_length(self.tokenizer, texts, "text", self.max_length, frame=FRAME)
        rows = in_batches(batches, fill, texts, progress=progress)
        return [found_hypotheses(*row) for row in rows]

    def masked_scores(self, texts: Sequence[str], whole_words: bool = False) -> dict[str, float]:
        """Masks tokens of texts and measures how well the model predicts them.

        The same tokens are masked in every call; longer texts are split.

        Args:
            texts: The texts, without gaps.
            whole_words: Whether to mask all pieces of a word together.

        Returns:
            The "perplexity" of the masked tokens, and the "accuracy" of the most probable tokens,
            in percent.

        Raises:
            UserError: The texts have no tokens.
        """
        return token_scores(self.backbone, self.masked_examples(texts, whole_words))

    def masked_examples(self, texts: Sequence[str], whole_words: bool = False) -> MaskedExamples:
        """Masks tokens of texts; see `masked_scores`."""
        texts = check_texts("texts", texts)
        return MaskedExamples.from_texts(
            texts, Masking(self.tokenizer, whole_words), self.max_length
        )

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts with gaps (see `TextTask.input_ids`)."""
        return super().input_ids(self._with_own_mask(texts))

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Returns the signatures of an export (see `keras_attn.tasks.serving`)."""
        best = compiled(self._best_tokens, jit)
        most = min(n_best, int(self._ordinary.sum()))

        def single(text):
            filled, scores = self._fill(text, 1, best)
            return {"text": filled[:, 0], "probability": tf.exp(scores[:, 0])}

        def several(text):
            filled, scores = self._fill(text, most, best)
            return {"text": filled, "probability": tf.exp(scores)}

        def from_ids(token_ids):
            read = real_ids(token_ids)  # keeps the order of the gaps
            positions, count = self._gaps(read)
            found, scores = best(read, positions, 1)
            return {
                "token_ids": self._in_gaps(token_ids, token_ids, found[..., 0], count),
                "probability": self._in_gaps(
                    token_ids, tf.ones_like(token_ids, tf.float32), tf.exp(scores[..., 0]), count
                ),
            }

        def several_from_ids(token_ids):
            chosen, totals, count = self._ways(real_ids(token_ids), most, best)
            ways = tf.repeat(token_ids, most, axis=0)
            gaps = tf.reshape(chosen, [-1, tf.shape(chosen)[2]])
            filled = self._in_gaps(ways, ways, gaps, tf.repeat(count, most))
            filled = tf.reshape(filled, [-1, most, tf.shape(token_ids)[1]])
            return {"token_ids": filled, "probability": tf.exp(totals)}

        return self._signatures(single, from_ids) | {
            "n_best": ServingFunction(several, {"text": TEXTS}, compared=first_and_numbers),
            "n_best_token_ids": dataclasses.replace(
                self._ids_signature(several_from_ids), compared=first_and_numbers
            ),
        }

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens, with gaps."""
        texts = example_texts(self.tokenizer, self.max_length - FRAME)
        return [MASK, *texts, *(f"{text} {MASK}" for text in texts)]

    def _fill(self, texts, n_best, best=None):
        """Texts with their gaps filled, (batch, n_best), and their log-probabilities."""
        chosen, totals, count = self._ways(self.input_ids(texts), n_best, best)
        filled = self._written(
            tf.repeat(texts, n_best),
            tf.RaggedTensor.from_tensor(
                tf.reshape(chosen, [-1, tf.shape(chosen)[2]]), tf.repeat(count, n_best)
            ),
        )
        return tf.reshape(filled, tf.shape(totals)), totals

    def _ways(self, token_ids, n_best, best=None):
        """Ids (batch, n_best, gaps), their log-probabilities, and how many gaps each text has."""
        positions, count = self._gaps(token_ids)
        found, scores = (best or self._best_tokens)(token_ids, positions, n_best)
        real = tf.sequence_mask(count, tf.shape(positions)[1])
        # A position that is not a gap is filled in one way.
        alone = tf.where(tf.range(n_best) == 0, 0.0, -math.inf)
        return *_combined(found, tf.where(real[..., None], scores, alone)), count

    def _in_gaps(self, token_ids, values, fillings, count):
        """Values (rows, length) with fillings (rows, gaps) where the ids have gaps."""
        real = tf.sequence_mask(count, tf.shape(fillings)[1])
        where = tf.where(token_ids == self.tokenizer.mask_id)
        return tf.tensor_scatter_nd_update(values, where, tf.boolean_mask(fillings, real))

    def _gaps(self, token_ids):
        """The positions of the gaps, padded with 0, and how many each text has."""
        is_gap = token_ids == self.tokenizer.mask_id
        everywhere = tf.zeros_like(token_ids) + tf.range(tf.shape(token_ids)[1])
        count = tf.reduce_sum(tf.cast(is_gap, tf.int32), axis=1)
        return padded(tf.ragged.boolean_mask(everywhere, is_gap)), count

    def _best_tokens(self, token_ids, positions, n_best):
        """Ids and log-probabilities (batch, gaps, n_best) of what fits best into each gap."""
        logits = self.backbone({"token_ids": token_ids, "positions": positions})
        scores = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        # Special tokens and ids without a token never fill a gap.
        allowed = np.zeros(logits.shape[-1], bool)
        allowed[: len(self._ordinary)] = self._ordinary
        scores, ids = tf.math.top_k(tf.where(allowed, scores, -math.inf), n_best)
        return ids, scores

    def _with_own_mask(self, texts):
        if self._mask == MASK:
            return texts
        return tf.strings.regex_replace(texts, re.escape(MASK), self._mask.replace("\\", r"\\"))

    def _written(self, texts, token_ids):
        """Texts (rows,) with tokens, ragged (rows, gaps), in place of their gaps."""
        tokens = token_ids.with_values(self.tokenizer.bytes_of(token_ids.values))
        nothing = tf.fill([tokens.nrows(), 1], "")
        tokens = tf.concat([tokens, nothing], axis=1)
        # One more than there are gaps.
        parts = tf.strings.split(self._with_own_mask(texts), self._mask)
        if not self.tokenizer.is_continued.any():
            parts, tokens = self._spaced(parts, tokens)
            filled = tf.strings.reduce_join(
                parts.with_values(parts.values + tokens.values), axis=-1
            )
            # Bytes that are filled in may be parts of characters.
            return tf.strings.unicode_transcode(filled, "UTF-8", "UTF-8", errors="replace")
        goes_on = tf.strings.regex_full_match(tokens.values, f"(?s){CONTINUED}.+")
        before = tf.where(
            goes_on, tf.strings.regex_replace(parts.values, r"\s+$", ""), parts.values
        )
        plain = tf.strings.regex_replace(tokens.values, f"^{CONTINUED}(.)", r"\1")
        return tf.strings.reduce_join(parts.with_values(before + plain), axis=-1)

    def _spaced(self, parts, tokens):
        """Parts of texts and the tokens after them, ragged (rows, parts), with one space between.

        A token may begin with a space. That takes the place of the spaces before the gap, and at
        the beginning of a text there is none.
        """
        plain = tf.strings.regex_replace(tokens.values, r"(?s)^ (.)", r"\1")
        has_space, places = plain != tokens.values, tf.range(tf.size(plain))
        takes = has_space
        if self.tokenizer.mask_takes_spaces:
            is_last = _is_any_of(places, tokens.row_limits() - 1)  # what follows the last gap
            takes |= ~is_last
        before = tf.where(takes, tf.strings.regex_replace(parts.values, r"\s+$", ""), parts.values)
        begins = has_space & (before == "") & _is_any_of(places, tokens.row_starts())
        return parts.with_values(before), tokens.with_values(tf.where(begins, plain, tokens.values))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.backbone.encoder).__name__})"


def _is_any_of(places, some):
    """Which of the places 0, 1, … are among some, boolean as `places`."""
    ones = tf.ones_like(some, tf.bool)
    return tf.scatter_nd(tf.cast(some, tf.int32)[:, None], ones, tf.shape(places))


def _combined(ids, scores):
    """The best choices of one token for each gap.

    Args:
        ids: int32 (batch, gaps, n), the best ones for each gap.
        scores: Their log-probabilities.

    Returns:
        For each of the n best ways its ids, (batch, n, gaps), and its log-probability, (batch, n).
    """
    batch, gaps, n_best = tf.unstack(tf.shape(ids))
    alone = tf.where(tf.range(n_best) == 0, 0.0, -math.inf)
    totals = tf.zeros([batch, 1]) + alone
    chosen = tf.zeros([batch, n_best, gaps], tf.int32)

    def add(gap, totals, chosen):
        sums = totals[:, :, None] + scores[:, gap, None, :]  # (batch, way so far, token)
        totals, places = tf.math.top_k(tf.reshape(sums, [batch, n_best * n_best]), n_best)
        picked = tf.gather(ids[:, gap], places % n_best, batch_dims=1)
        so_far = tf.gather(chosen, places // n_best, batch_dims=1)
        return gap + 1, totals, tf.where(tf.range(gaps) == gap, picked[..., None], so_far)

    shapes = (tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([None, None, None]))
    _, totals, chosen = tf.while_loop(
        lambda gap, *_: gap < gaps, add, (0, totals, chosen), shape_invariants=shapes
    )
    return chosen, totals
