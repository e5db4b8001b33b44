"""Runs of language models."""

import numpy as np

from keras_attn.data import TextExamples
from keras_attn.tasks import CausalLMTask, DecodingSettings, ExportedCausalLM
from keras_attn.tasks.measuring.token_losses import TokenLosses
from keras_attn.training.task_runs.lines import LinesRun, first_words, words_of
from keras_attn.training.task_runs.soft_targets import TOKENS

_PROMPT = 4  # words
_PART = 16  # characters, of a text without spaces


class CausalLMRun(LinesRun):
    """Trains a decoder on texts."""

    task_class = CausalLMTask
    measured_tasks = (CausalLMTask, ExportedCausalLM)
    measures = ("perplexity",)
    generates = True
    soft_targets = TOKENS

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        longest = settings.data.max_source_length or self.most_tokens
        return TextExamples.from_texts(texts.texts, tokenizers["text"], longest, texts.name)

    def lengths_of(self, task):
        return {"text": task.decoding.max_length}

    def decoding_lengths(self, lengths, task):
        return dict.fromkeys(("max_source_length", "max_length"), lengths["text"])

    def task(self, settings, texts, tokenizers, source_task):
        tokenizer = tokenizers["text"]
        if source_task:
            backbone, decoding = source_task.backbone, source_task.decoding
        else:
            # A prompt and its continuation.
            longest = sum(settings.decoding[name] for name in ("max_source_length", "max_length"))
            backbone = self.model(settings, longest, tokenizer.vocabulary_size)
            decoding = DecodingSettings()
        return CausalLMTask(backbone, tokenizer, decoding.replace(**settings.decoding))

    def made_input(self, task, text):
        words = len(list(words_of(text)))
        if words > 1:
            return first_words(text, min(_PROMPT, words // 2))
        return text[: min(_PART, len(text) // 2)] or None

    def losses(self, task, texts):
        log_probabilities, tokens = np.transpose(task.score_texts(texts))
        nothing = [""] * len(texts)
        return TokenLosses(-log_probabilities, tokens, np.zeros_like(tokens), nothing, nothing)
