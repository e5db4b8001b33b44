"""Runs that pre-train an encoder-decoder on texts alone, as T5 is."""

from collections.abc import Mapping

import tensorflow as tf

from keras_attn.data import CorruptedExamples, SpanCorruption, SpanNoise
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tasks.measuring.token_losses import token_losses
from keras_attn.tokenizers import Tokenizer, sentinel_ids
from keras_attn.training.run_settings import DataSettings
from keras_attn.training.task_runs.lines import LinesRun, words_of
from keras_attn.training.task_runs.seq2seq import EncoderDecoderRun
from keras_attn.validation import require


class SpanCorruptionRun(EncoderDecoderRun, LinesRun):
    """Trains an encoder-decoder to generate the missing spans of texts.

    Random spans are replaced by sentinel tokens, and the model learns to generate the missing text.
    """

    name = "span_corruption"
    tokenizer_settings = ("shared", "source")
    measured_tasks = (Seq2SeqTask,)

    def check(self, settings):
        super().check(settings)
        _noise(settings.data)
        shared = settings.tokenizers.get("shared")
        require(
            bool(settings.init) or shared is True,
            "Span corruption has one tokenizer for both sides, `tokenizers.shared`.",
            shared=shared,
        )

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        data = settings.data
        return CorruptedExamples.from_texts(
            texts.texts,
            SpanCorruption(_one_tokenizer(tokenizers), _noise(data)),
            data.max_source_length or DecodingSettings().max_source_length,
            data.max_target_length,
            texts.name,
            # Held-out texts lose the same spans in all runs.
            seed=0 if held_out else settings.training.seed,
        )

    def lengths_of(self, task):
        return {"source": task.decoding.max_source_length}

    def fitting_lengths(self, settings, examples):
        data, corruption = settings.data, examples.corruption
        source = data.max_source_length or DecodingSettings().max_source_length
        longest = corruption.longest_text(source, data.max_target_length)
        _, target = corruption.lengths(longest)
        return {"source": source, "target": int(target)}

    def decoding_lengths(self, lengths, task):
        # Not the length of a few spans: room for the texts of a fine-tuned task.
        decoding = task.decoding if task else DecodingSettings()
        return {"max_source_length": lengths["source"], "max_length": decoding.max_length}

    def made_input(self, task, text):
        """Replaces a word by the first sentinel, and another one of a text of six by the second."""
        words = list(words_of(text))
        if len(words) < 2:
            return None
        tokenizer = _one_tokenizer(task.tokenizers)
        ids = sentinel_ids(tokenizer)[: 2 if len(words) >= 6 else 1]
        names = [name.decode() for name in tokenizer.tokens_of(tf.constant(ids)).numpy()]
        for number, name in reversed(list(enumerate(names, 1))):
            begin, end = words[number * len(words) // (len(names) + 1)].span()
            text = text[:begin] + name + text[end:]
        return text

    def losses(self, task, texts):
        """Measures a task on texts with missing spans as in the paper, the same at each call."""
        tokenizer, longest = _one_tokenizer(task.tokenizers), task.decoding.max_source_length
        examples = CorruptedExamples.from_texts(texts, SpanCorruption(tokenizer), longest)
        return token_losses(task.backbone, examples, len(texts), tokenizer)


def _noise(data: DataSettings) -> SpanNoise:
    return SpanNoise(data.noise_density, data.mean_noise_span_length)


def _one_tokenizer(tokenizers: Mapping[str, Tokenizer]) -> Tokenizer:
    source, target = tokenizers["source"], tokenizers["target"]
    require(
        source.vocabulary == target.vocabulary,
        "Span corruption needs a task with one vocabulary for both sides.",
        source=source.vocabulary_size,
        target=target.vocabulary_size,
    )
    return source
