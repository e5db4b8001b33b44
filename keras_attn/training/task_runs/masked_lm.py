"""Runs of masked language models."""

import re

import tensorflow as tf

from keras_attn.data import MaskedExamples, Masking, Pairs
from keras_attn.models import MaskedLanguageModel
from keras_attn.tasks import MaskedLMTask
from keras_attn.tasks.measuring.token_losses import token_losses
from keras_attn.tokenizers import Tokenizer, WordPieceTokenizer
from keras_attn.tokenizers.base import MASK
from keras_attn.training.named_sets import (
    CMUDICT,
    SETS_OF_PAIRS,
    check_settings_of_named,
    named_set,
)
from keras_attn.training.run_texts import Lines
from keras_attn.training.task_runs.encoders import ENCODER_TASKS, encoder_of
from keras_attn.training.task_runs.lines import LinesRun
from keras_attn.training.task_runs.soft_targets import CLASSES

_SETS = {name: found for name, found in SETS_OF_PAIRS.items() if name != CMUDICT}
# Kinds that have a mask token only where it is asked for.
_WITH_MASK = ("symbols", "characters", "byte_level_bpe")


class MaskedLMRun(LinesRun):
    """Trains an encoder to predict masked tokens of texts."""

    task_class = MaskedLMTask
    measured_tasks = (MaskedLMTask,)
    other_starts = ENCODER_TASKS
    soft_targets = CLASSES

    def check(self, settings):
        super().check(settings)
        check_settings_of_named(_SETS, settings)

    def known(self, paths, data):
        """The texts of generated data, whose labels are not read."""
        load = named_set(_SETS, paths)
        if load is None:
            return {}
        print(f"{paths[0]}: only the texts are read, not the labels.", flush=True)
        return {part: _texts_of(pairs) for part, pairs in load(data).items()}

    def read_test(self, paths, data):
        known = self.known(paths, data)
        return known["test"] if known else super().read_test(paths, data)

    def made_tokenizer(self, settings, texts, roles):
        options = settings.tokenizers.get("text") or {}
        if options.get("kind") in _WITH_MASK:
            settings = settings.replace(tokenizers={"text": {"with_mask": True, **options}})
        return super().made_tokenizer(settings, texts, roles)

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
        """Masks the word, or else the character, of one token that is nearest to the middle."""
        words = list(re.finditer(_unit(task.tokenizer), text))
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


def _texts_of(pairs: Pairs) -> Lines:
    return Lines(pairs.sources, pairs.name)


def _unit(tokenizer: Tokenizer) -> str:
    """A pattern of what a token may be."""
    if isinstance(tokenizer, WordPieceTokenizer):
        return r"\w+"
    return r"\S+" if tokenizer.separator else r"\S"
