"""Sequence-to-sequence tasks, such as translation and grapheme-to-phoneme conversion."""

import keras
import tensorflow as tf

from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.generating import GeneratingTask
from keras_attn.tasks.serving import compiled
from keras_attn.tasks.texts import check_positions, ids_with_end, label_log_probabilities
from keras_attn.tasks.token_view import TokenView, token_texts
from keras_attn.tokenizers import Tokenizer


class Seq2SeqTask(GeneratingTask):
    """Generates texts from texts with an encoder-decoder.

    Args:
        backbone: An encoder-decoder with the step protocol, such as
            `keras_attn.models.Transformer`.
        source_tokenizer: Tokenizer of the source texts.
        target_tokenizer: Tokenizer of the target texts.
        decoding: Settings of beam search and sampling.

    Raises:
        UserError: The decoding lengths exceed the model's positions, or a tokenizer does not fit
            (see `GeneratingTask`).

    Examples:
        >>> letters, sounds = CharacterTokenizer("abcd"), SymbolTokenizer(["AE", "B", "D", "K"])
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = Transformer(letters.vocabulary_size, sounds.vocabulary_size, **sizes)
        >>> task = Seq2SeqTask(model, letters, sounds, DecodingSettings(beams=1, max_length=8))
        >>> model.compile(keras.optimizers.Adam(0.01), TokenCrossEntropy())
        >>> inputs, labels = task.teacher_forced(["cab", "bad"], ["K AE B", "B AE D"])
        >>> losses = [model.train_on_batch(inputs, labels) for update in range(100)]
        >>> task.predict(["cab"])
        ['K AE B']
    """

    kind = "seq2seq"
    input_name = "source text"
    input_role, output_role = _roles = ("source", "target")

    def __init__(
        self,
        backbone: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingSettings | None = None,
    ):
        tokenizers = {"source": source_tokenizer, "target": target_tokenizer}
        super().__init__(backbone, tokenizers, decoding)
        lengths = self._lengths
        message = "The decoding lengths must not exceed the model's positions."
        check_positions(backbone, max(lengths.values()), message, **lengths)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenizes source texts, with an end token after each and 0 as padding."""
        longest = self.decoding.max_source_length
        return ids_with_end(self.source_tokenizer, texts, longest, self.input_name)

    def teacher_forced(self, texts: tf.Tensor, targets: tf.Tensor) -> tuple[dict, tf.Tensor]:
        """Tokenizes pairs of texts as inputs and labels of the model.

        Args:
            texts: Strings (batch,), the sources.
            targets: Strings (batch,).

        Returns:
            `{"source_ids": …, "target_ids": …}`, in which targets begin with the start id, and the
            labels, which end with the end id; int32 (batch, length), with 0 as padding.

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """
        labels = self.target_ids(targets)
        return {"source_ids": self.input_ids(texts), "target_ids": self.shifted(labels)}, labels

    def read_tokens(self, text: tf.Tensor, target: tf.Tensor) -> TokenView:
        """Tokenizes pairs of texts for the model and names their tokens.

        Args:
            text: Strings (batch,), the sources.
            target: Strings (batch,).

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """
        return self._reading(self.input_ids(text), self.target_ids(target))

    def read_answer(self, text: str) -> tuple[TokenView, str]:
        """Predicts a text and returns the tokens that were read and generated.

        Tokenizing the answer again might give other tokens.

        Args:
            text: The source.

        Returns:
            The tokens, in a batch of one, and the answer.

        Raises:
            InvalidArgumentError: The text exceeds the task's maximum length.
        """
        source_ids = self.input_ids(tf.constant([text]))
        search = self.serving_functions(n_best=1)["token_ids"].function
        labels = tf.function(search, autograph=False)(source_ids=source_ids)["token_ids"]
        labels = labels[:, : tf.math.count_nonzero(labels)]
        answer = self.target_tokenizer.detokenize(labels)[0].numpy().decode()
        return self._reading(source_ids, labels), answer

    def _reading(self, source_ids, labels) -> TokenView:
        inputs = {"source_ids": source_ids, "target_ids": self.shifted(labels)}
        return TokenView(
            inputs,
            token_texts(self.source_tokenizer, source_ids),
            token_texts(self.target_tokenizer, inputs["target_ids"]),
            token_texts(self.target_tokenizer, labels),
        )

    def shifted(self, labels: tf.Tensor) -> tf.Tensor:
        """Shifts target ids right: the decoder's inputs begin with a start id and have no end id.

        Args:
            labels: int32 (batch, length), with 0 as padding.

        Returns:
            int32 (batch, length).
        """
        start = tf.fill([tf.shape(labels)[0], 1], self.target_tokenizer.start_id)
        inside = tf.where(labels == self.target_tokenizer.end_id, 0, labels)
        # As many as labels, also if there are none.
        return tf.concat([start, inside], axis=1)[:, : tf.shape(labels)[1]]

    def _begin(self, input_ids, room, beams, coverage=False):
        options = {"coverage": True} if coverage else {}  # most models have no coverage
        state = self.backbone.initial_state(input_ids, room, beams, **options)
        return self.target_tokenizer.start_id, state

    def _texts_of(self, input_ids, token_ids):
        ids = tf.reshape(token_ids, [-1, token_ids.shape[-1]])
        return tf.reshape(self.target_tokenizer.detokenize(ids), [-1, token_ids.shape[1]])

    def _score_ids(self, input_ids, target_ids, jit=False):
        def log_probabilities(source_ids, target_ids, labels):
            logits = self.backbone({"source_ids": source_ids, "target_ids": target_ids})
            return tf.reduce_sum(label_log_probabilities(labels, logits), axis=1)

        inputs = (input_ids, self.shifted(target_ids))
        return {
            "log_probability": compiled(log_probabilities, jit)(*inputs, target_ids),
            "length": tf.math.count_nonzero(target_ids, axis=1, dtype=tf.int32),
        }
