"""Runs of tasks from text to text."""

from typing import ClassVar

from keras_attn.data import PairExamples
from keras_attn.tasks import DecodingSettings, Seq2SeqTask
from keras_attn.tokenizers import SymbolTokenizer
from keras_attn.training.named_sets import CMUDICT
from keras_attn.training.task_runs.base import TaskRun
from keras_attn.training.task_runs.pairs import PairsRun
from keras_attn.training.task_runs.soft_targets import TOKENS


class EncoderDecoderRun(TaskRun):
    """Base class of runs that train an encoder-decoder."""

    task_class = Seq2SeqTask
    roles = ("source", "target")
    tokenizer_settings = ("shared", *roles)
    lengths: ClassVar = {"source": "max_source_length", "target": "max_target_length"}
    generates = True
    soft_targets = TOKENS

    def train_tokenizers(self, settings, texts):
        """Makes the tokenizers, one for both sides if they are `shared`."""
        if not settings.tokenizers.get("shared"):
            return super().train_tokenizers(settings, texts)
        shared = self.made_tokenizer(settings, texts, self.roles)
        return dict.fromkeys(self.roles, shared)

    def task(self, settings, texts, tokenizers, source_task):
        source, target = tokenizers["source"], tokenizers["target"]
        if source_task:
            backbone, decoding = source_task.backbone, source_task.decoding
        else:
            sizes = {"vocabulary_size": source.vocabulary_size}
            # Those of a teacher are what the teacher has, whatever is set.
            if not settings.tokenizers.get("shared") or source.digest != target.digest:
                sizes["target_vocabulary_size"] = target.vocabulary_size
            longest = max(settings.decoding[name] for name in ("max_source_length", "max_length"))
            backbone, decoding = self.model(settings, longest, **sizes), DecodingSettings()
        return Seq2SeqTask(backbone, source, target, decoding.replace(**settings.decoding))


class Seq2SeqRun(EncoderDecoderRun, PairsRun):
    """Trains an encoder-decoder on pairs of texts."""

    long_texts = ("drop", "error")
    beams = 1
    generates_targets = True
    no_answer = ""

    def readable(self, teacher, inputs):
        longest = teacher.decoding.max_source_length
        lengths = self.source_lengths(teacher, inputs)
        return [text for text, length in zip(inputs, lengths, strict=True) if length <= longest]

    def ask(self, teacher, inputs, beams):
        return teacher.predict(inputs, beams)

    def longest_source(self, settings):
        return settings.decoding["max_source_length"]

    def default_metrics(self, data):
        return ["per", "wer"] if list(data) == [CMUDICT] else ["bleu", "chrf", "wer"]

    def check_options(self, beams, perplexity):
        pass

    def perplexity(self, task, texts):
        return {"perplexity": task.perplexity(texts.sources, texts.targets)}

    def doubts(self, texts, tokenizers):
        return [
            f"every {role} is one symbol; write spaces between symbols"
            for role, side in zip(self.roles, self.columns_of(texts, self.roles), strict=True)
            if isinstance(tokenizers[role], SymbolTokenizer)
            and all(len(text.split()) == 1 for text in side)
        ]

    def columns_of(self, texts, roles):
        sides = {"source": texts.sources, "target": texts.targets}
        return [sides[role] for role in roles]

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        return PairExamples.from_pairs(
            texts,
            tokenizers["source"],
            tokenizers["target"],
            settings.data.max_source_length or self.most_tokens,
            settings.data.max_target_length or self.most_tokens,
            self.for_long_texts(settings),
        )

    def lengths_of(self, task):
        return {"source": task.decoding.max_source_length, "target": task.decoding.max_length}

    def decoding_lengths(self, lengths, task):
        return {"max_source_length": lengths["source"], "max_length": lengths["target"]}
