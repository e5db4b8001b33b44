"""Whole texts as the inputs of a task."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attn.tasks.serving import IDS
from keras_attn.tasks.texts import (
    beginning,
    check_positions,
    check_texts,
    example_texts,
    fitting_batches,
    framed,
    framed_ids,
    ids_with_end,
    joined_ids,
    real_ids,
    shortened,
)
from keras_attn.tasks.token_view import TokenView, token_texts
from keras_attn.tasks.truncating import TruncatingTask
from keras_attn.tasks.whole_inputs import WholeInputTask
from keras_attn.tokenizers import Tokenizer, pair_ids
from keras_attn.tokenizers.text_pairs import BETWEEN, require_ends_between, segment_ids
from keras_attn.validation import require, require_positive


class TextInputs(TruncatingTask, WholeInputTask):
    """Base class of tasks whose inputs are texts.

    Attributes:
        tokenizer: Tokenizer of the texts.
        max_length: Maximum number of tokens of a text, including start and end tokens.
        with_start: Whether the start token is before a text, as in BERT.
        truncate: Whether longer texts are truncated; otherwise they are an error.
        pairs: Whether an input is two texts with a tab between them.
        ends_between: Number of end tokens between the texts of a pair.
        segments: Whether the model receives which text of a pair each token belongs to.
    """

    served_input = "text"
    tokenizer: Tokenizer
    max_length: int
    with_start: bool
    truncate: bool
    pairs: bool = False
    ends_between: int = 1
    segments: bool = False

    def _read_with(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        with_start: bool,
        truncate: bool,
        pairs: bool = False,
        ends_between: int = 1,
        segments: bool = False,
    ) -> None:
        """Sets the attributes.

        Raises:
            UserError: The length is not positive, or exceeds the model's positions; there are not
                one or two end tokens between texts; or the model has no segments.
        """
        require_positive(max_length=max_length)
        check_positions(self.backbone, max_length, max_length=max_length)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.with_start = bool(with_start)
        self.truncate = bool(truncate)
        self.read_pairs(pairs, ends_between, segments)

    def read_pairs(
        self, pairs: bool, ends_between: int | None = None, segments: bool | None = None
    ) -> None:
        """Sets whether and how the task reads pairs of texts.

        Args:
            pairs: Whether an input is two texts with a tab between them.
            ends_between: Number of end tokens between them: 1 as in BERT, 2 as in RoBERTa; by
                default as before.
            segments: Whether the model receives which text of a pair each token belongs to; by
                default if it has two segments, as BERT has.

        Raises:
            UserError: `ends_between` is another number, or the model has no two segments.
        """
        ends_between = self.ends_between if ends_between is None else ends_between
        require_ends_between(ends_between)
        if segments is None:
            segments = has_segments(self.backbone)
        require(
            not segments or has_segments(self.backbone),
            "`segments` needs a model with two segments, such as `Bert`.",
            segments=segments,
            model=type(self.backbone).__name__,
        )
        self.pairs = bool(pairs)
        self.ends_between = ends_between
        self.segments = bool(segments)

    @property
    def frame(self) -> int:
        """Number of special tokens around a text, and between two texts."""
        return 1 + self.with_start + self.pairs * self.ends_between

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes texts, adding the end token and, depending on the task, the start token.

        Args:
            texts: Strings (batch,). Of pairs the end token is after each text; where both are
                truncated, each has half of the room, and what one leaves.

        Returns:
            int32 (batch, length).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length, and the task does not
                truncate; or a pair is none.
        """
        if self.pairs:
            room = self.max_length - self.frame
            both = pair_ids(self.tokenizer, texts)
            ids = joined_ids(self.tokenizer, *both, room, self.truncate, self.ends_between)
            return framed(self.tokenizer, ids, self.with_start)
        if self.with_start:
            return framed_ids(self.tokenizer, texts, self.max_length, "text", self.truncate)
        return ids_with_end(self.tokenizer, texts, self.max_length, "text", self.truncate)

    def read_tokens(self, strings: tf.Tensor) -> TokenView:
        """Tokenizes texts for the model and names their tokens.

        Args:
            strings: Strings (batch,).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length, and the task does not
                truncate.
        """
        ids = self.input_ids(strings)
        return TokenView(self._inputs_of(ids), source=token_texts(self.tokenizer, ids))

    def example_texts(self) -> list[str]:
        """Returns a few texts of different lengths, made of the most frequent tokens."""
        room = self.max_length - self.frame
        if not self.pairs:
            return example_texts(self.tokenizer, room + 1)
        texts = example_texts(self.tokenizer, room // 2 + 1)
        return [f"{text}{BETWEEN}{other}" for text, other in zip(texts, texts[::-1], strict=True)]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Numbers of the tokens of texts before they are truncated, those around them included.

        Args:
            texts: Any number of texts, at least one; or pairs.
        """
        if self.pairs:
            first, second = pair_ids(self.tokenizer, tf.constant(texts))
            lengths = first.row_lengths() + second.row_lengths()
        else:
            lengths = self.tokenizer.tokenize(tf.constant(texts)).row_lengths()
        return (lengths + self.frame).numpy().tolist()

    @property
    def _encoding(self):
        return "token_ids", IDS, {"token_ids": self.max_length}

    def _encoded(self, strings):
        return self.input_ids(strings)

    def model_inputs(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for ids, in which 0 is padding at any position."""
        return self._inputs_of(real_ids(encoded))

    def _inputs_of(self, ids):
        inputs = {"token_ids": ids}
        if self.pairs and self.segments:
            inputs["segment_ids"] = segment_ids(ids, self.tokenizer.end_id)
        return inputs

    def _batches(self, inputs):
        texts = check_texts("texts", inputs)
        if self.pairs:
            for text in texts:
                require_pair(text)
        if self.truncate:
            parts = (text.split(BETWEEN) if self.pairs else [text] for text in texts)
            texts = [
                BETWEEN.join(beginning(one, self.max_length) for one in each) for each in parts
            ]
        if not texts:
            return texts, []
        what = "pair of texts" if self.pairs else "text"
        lengths = self.token_counts(texts)
        return texts, fitting_batches(
            texts, lengths, what, self.max_length, self.frame, self.truncate
        )


def has_segments(model: keras.Model) -> bool:
    """Whether a model, or the encoder in it, distinguishes two segments."""
    sizes = getattr(model, "encoder", model).get_config()
    inputs = getattr(model, "input", None)
    takes_segments = isinstance(inputs, dict) and "segment_ids" in inputs
    return takes_segments and sizes.get("num_segments", 2) > 1


def require_pair(text: str) -> None:
    """Raises a `UserError` unless a text is two texts with a tab between them."""
    require(
        text.count(BETWEEN) == 1,
        "This task reads pairs: an input is two texts with one tab between them.",
        text=shortened(text),
        tabs=text.count(BETWEEN),
    )
