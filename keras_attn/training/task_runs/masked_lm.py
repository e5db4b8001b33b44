"""Runs of masked language models."""

import re

import tensorflow as tf

from keras_attn.data import MaskedExamples, Masking
from keras_attn.models import MaskedLanguageModel
from keras_attn.tasks import MaskedLMTask
from keras_attn.tasks.measuring.token_losses import token_losses
from keras_attn.tokenizers.word_piece import MASK
from keras_attn.training.task_runs.encoders import ENCODER_TASKS, encoder_of
from keras_attn.training.task_runs.lines import LinesRun


class MaskedLMRun(LinesRun):
    """Trains an encoder to predict masked tokens of texts."""

    task_class = MaskedLMTask
    measured_tasks = (MaskedLMTask,)
    other_starts = ENCODER_TASKS

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return MaskedExamples.from_texts(
            texts.texts,
            Masking(tokenizers["text"], settings.data.whole_words),
            settings.data.max_source_length or self.most_tokens,
            texts.name,
            # Held-out texts have the same masks in all runs.
            seed=0 if held_out else settings.training.seed,
        )

    def task(self, settings, texts, tokenizers, source_task):
        tokenizer, longest = tokenizers["text"], settings.data.max_source_length
        if source_task:
            model = source_task.backbone
        else:
            model = MaskedLanguageModel(self.model(settings, longest, tokenizer.vocabulary_size))
        return MaskedLMTask(model, tokenizer, longest)

    def with_new_head(self, source_task, settings, texts):
        model = MaskedLanguageModel(encoder_of(source_task))
        return MaskedLMTask(model, source_task.tokenizer, source_task.max_length)

    def made_input(self, task, text):
        """Masks the word of one token that is nearest to the middle."""
        words = list(re.finditer(r"\w+", text))
        if len(words) < 2:
            return None
        lengths = task.tokenizer.tokenize(tf.constant([word[0] for word in words])).row_lengths()
        places = [place for place, length in enumerate(lengths.numpy()) if length == 1]
        if not places:
            return None
        begin, end = words[min(places, key=lambda place: abs(place - len(words) // 2))].span()
        return text[:begin] + MASK + text[end:]

    def losses(self, task, texts):
        examples = task.masked_examples(texts)
        return token_losses(task.backbone, examples, len(texts), task.tokenizer)
