"""Text generation with a causal language model."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import keras
import numpy as np
import tensorflow as tf

from keras_attn.data import TextExamples, plan_epoch
from keras_attn.tasks.decoding import DecodingSettings
from keras_attn.tasks.generating import GeneratingTask
from keras_attn.tasks.generating_signatures import first_of_each
from keras_attn.tasks.graphs import ModelGraph
from keras_attn.tasks.hypothesis import perplexity_of
from keras_attn.tasks.serving import IDS, TEXTS, ServingFunction, compiled
from keras_attn.tasks.texts import (
    check_positions,
    check_texts,
    fitting_ids,
    label_log_probabilities,
    padded,
)
from keras_attn.tasks.token_view import TokenView, token_texts
from keras_attn.tokenizers import Tokenizer


class CausalLMTask(GeneratingTask):
    """Continues texts, and computes how probable texts are.

    `predict` and the like return the continuation alone, to be put after the prompt as it is.
    `score` and `perplexity` take prompts and their continuations; the prompt of a whole text is "".

    Args:
        backbone: A language model with the step protocol and `prefill`, as
            `keras_attn.models.CausalTransformer`.
        tokenizer: Its tokenizer.
        decoding: How the task generates. `max_source_length` is for the prompt with the start
            token before it, `max_length` for its continuation.
        add_start: Whether to put the start token before every prompt. Otherwise only an empty one
            has it, as for GPT-2 of Hugging Face.

    Raises:
        UserError: The decoding lengths exceed the model's positions.

    Examples:
        >>> tokenizer = CharacterTokenizer("abc")
        >>> sizes = dict(num_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32)
        >>> model = CausalTransformer(tokenizer.vocabulary_size, **sizes)
        >>> model.compile(keras.optimizers.Adam(0.01), TokenCrossEntropy())
        >>> inputs, labels = TextExamples.from_texts(["abcabc"], tokenizer).assemble([0])
        >>> losses = [model.train_on_batch(inputs, labels) for update in range(100)]
        >>> task = CausalLMTask(model, tokenizer, DecodingSettings(beams=1, max_length=8))
        >>> task.predict(["ab"])
        ['cabc']
    """

    kind = "causal_lm"
    input_name = "prompt"
    input_role = output_role = "text"
    continues = True
    _saved = ("decoding", "add_start")
    _saved_later: ClassVar = {"add_start": True}

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Tokenizer,
        decoding: DecodingSettings | None = None,
        add_start: bool = True,
    ):
        super().__init__(backbone, {"text": tokenizer}, decoding)
        lengths = self._lengths
        message = "The decoding lengths, less 1, must not exceed the model's positions together."
        # The last token generated is never read.
        check_positions(backbone, sum(lengths.values()) - 1, message, **lengths)
        self.tokenizer = tokenizer
        self.add_start = bool(add_start)
        self._nll = ModelGraph(
            backbone,
            lambda inputs, labels: (
                -tf.reduce_sum(label_log_probabilities(labels, self.backbone(inputs)), axis=1)
            ),
            TextExamples.signature,
        )

    def text_perplexity(self, texts: Sequence[str]) -> float:
        """Perplexity of whole texts for each token, end tokens included.

        Args:
            texts: The texts; those longer than the task's `max_length` are read in pieces, each
                after the token before it and nothing else.

        Raises:
            UserError: There is no text with a token.
        """
        return perplexity_of(self.score_texts(texts))

    def score_texts(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """Scores whole texts, in pieces if they are long (see `text_perplexity`).

        Args:
            texts: The texts.

        Returns:
            For each text its log-probability and its number of tokens, the end token included; 0
            and 0 for a text without tokens.

        Raises:
            UserError: There is no text with a token.
        """
        texts = check_texts("texts", texts)
        examples = TextExamples.from_texts(texts, self.tokenizer, self.decoding.max_length)
        sums = np.zeros((len(texts), 2))
        for rows in plan_epoch(examples, max(4096, self.decoding.max_length), seed=None):
            inputs, labels = examples.assemble(rows)
            found = [-self._nll(inputs, labels).numpy(), (labels != 0).sum(axis=1)]
            np.add.at(sums, examples.indices[rows], np.stack(found, axis=1))
        return [(log_probability, int(tokens)) for log_probability, tokens in sums.tolist()]

    def serving_functions(self, n_best: int, jit: bool = False) -> dict[str, ServingFunction]:
        """Gives the functions that an exported task serves, those that draw texts among them.

        Samples depend on `seed`, int64, whose lower half is the seed and whose upper
        one the number of the text (see `GeneratingTask.sample`). `sample_default` draws by the
        settings of the task, `sample` and `sample_token_ids` by `temperature`, `top_k` and `top_p`.
        There is one of each for each text, so that a server can put requests together; defaults of
        inputs have a fixed number of rows, and would keep it from that.
        """

        def draw(input_ids, seed, settings):
            rules = dataclasses.replace(self.decoding.sampling, **settings)
            low = tf.cast(tf.bitwise.bitwise_and(seed, 2**32 - 1), tf.uint32)
            high = tf.cast(tf.bitwise.right_shift(seed, tf.constant(32, tf.int64)), tf.int32)
            return self._draw(self.decoding, rules, 1, jit)(input_ids, low, high)

        def sample(text, seed, **settings):
            input_ids = self.input_ids(text)
            return first_of_each(self._outputs(input_ids, draw(input_ids, seed, settings)))

        def sample_ids(text_ids, seed, **settings):
            drawn = draw(self.real_ids(text_ids), seed, settings)
            return first_of_each(self._ids_outputs(drawn))

        def example_ids(texts):
            return {"text_ids": self.input_ids(tf.constant(texts)), **_examples(len(texts))}

        seed = {"seed": tf.TensorSpec([None], tf.int64)}
        settings = {
            "temperature": tf.TensorSpec([None], tf.float32),
            "top_k": tf.TensorSpec([None], tf.int32),
            "top_p": tf.TensorSpec([None], tf.float32),
        }
        return super().serving_functions(n_best, jit) | {
            "sample": ServingFunction(
                sample,
                {"text": TEXTS} | seed | settings,
                lambda texts: {"text": texts, **_examples(len(texts))},
            ),
            "sample_default": ServingFunction(
                sample,
                {"text": TEXTS} | seed,
                lambda texts: {"text": texts, "seed": _examples(len(texts))["seed"]},
            ),
            "sample_token_ids": ServingFunction(
                sample_ids,
                {"text_ids": IDS} | seed | settings,
                example_ids,
                longest={"text_ids": self.decoding.max_source_length},
            ),
        }

    def input_ids(self, texts: tf.Tensor) -> tf.Tensor:
        """Turns prompts into ids, the start id before them and 0 as padding."""
        return padded(self._started(self._prompt(texts)))

    def read_tokens(self, text: tf.Tensor, target: tf.Tensor) -> TokenView:
        """Reads prompts and what continues them as the model does.

        Args:
            text: Strings (batch,), the prompts.
            target: Strings (batch,), their continuations, which may be empty.

        Raises:
            InvalidArgumentError: A text exceeds the task's maximum length.
        """
        longest = self.decoding.max_length
        target_ids = fitting_ids(self.tokenizer, target, longest, "target text")
        ids = padded(tf.concat([self._started(self._prompt(text)), target_ids], axis=1))
        return TokenView({"token_ids": ids}, target=token_texts(self.tokenizer, ids))

    def _prompt(self, texts):
        longest = self.decoding.max_source_length
        return fitting_ids(self.tokenizer, texts, longest, self.input_name)

    def real_ids(self, input_ids: tf.Tensor) -> tf.Tensor:
        """Moves padding to the end of each row.

        Args:
            input_ids: int32 (batch, length), 0 at padding, at any position. A row without a
                token begins with the start id, as the empty text does.

        Returns:
            int32 (batch, length), at least one token a row.
        """
        return padded(self._begun(_tokens(input_ids), always=False))

    def _started(self, prompt):
        return self._begun(prompt, self.add_start)

    def _begun(self, prompt, always):
        lengths = prompt.row_lengths()
        starts = tf.ones_like(lengths) if always else tf.cast(lengths == 0, lengths.dtype)
        ids = tf.fill([tf.reduce_sum(starts)], tf.constant(self.tokenizer.start_id, prompt.dtype))
        return tf.concat([tf.RaggedTensor.from_row_lengths(ids, starts), prompt], axis=1)

    def _begin(self, input_ids, room, beams, coverage=False):
        return self.backbone.prefill(input_ids, room, beams)

    def _texts_of(self, input_ids, token_ids):
        # What a text begins with decides how the rest is written: where the tokenizer puts
        # spaces. So the continuation is what the whole text has more than the prompt.
        n_best, length = token_ids.shape[1:]
        prompts = _tokens(input_ids)
        prompts = tf.gather(prompts, tf.repeat(tf.range(prompts.nrows()), n_best))
        whole = tf.concat([prompts, tf.reshape(token_ids, [-1, length])], axis=1)
        whole = self.tokenizer.detokenize(whole.to_tensor(default_value=self.tokenizer.pad_id))
        before = self.tokenizer.detokenize(prompts)
        left = tf.strings.length(whole) - tf.strings.length(before)
        texts = tf.strings.substr(whole, tf.strings.length(before), tf.maximum(left, 0))
        return tf.reshape(texts, [-1, n_best])

    def _score_ids(self, input_ids, target_ids, jit=False):
        def log_probabilities(token_ids, labels, counted):
            logits = self.backbone({"token_ids": token_ids})
            values = label_log_probabilities(labels, logits)
            return tf.reduce_sum(tf.where(counted, values, 0.0), axis=1)

        prompt, target = _tokens(input_ids), _tokens(target_ids)
        whole = tf.concat([prompt, target], axis=1)
        labels = padded(whole[:, 1:])
        places = tf.range(1, tf.shape(labels)[1] + 1)
        counted = places >= tf.cast(prompt.row_lengths(), tf.int32)[:, None]
        return {
            "log_probability": compiled(log_probabilities, jit)(
                padded(whole[:, :-1]), labels, counted
            ),
            "length": tf.cast(target.row_lengths(), tf.int32),
        }


def _tokens(ids):
    """The ids but for padding, ragged."""
    return tf.ragged.boolean_mask(ids, ids != 0)


def _examples(count):
    """A seed and settings for each of some texts."""
    return {
        "seed": np.arange(count, dtype="int64"),
        "temperature": np.full(count, 0.8, "float32"),
        "top_k": np.full(count, 40, "int32"),
        "top_p": np.full(count, 0.95, "float32"),
    }
