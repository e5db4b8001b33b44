"""Runs of tasks from text to a tag for each word."""

from keras_attn.data import TaggedExamples, read_tagged_texts
from keras_attn.evaluation import TAGGING
from keras_attn.models import TokenClassifier
from keras_attn.tasks import TokenClassificationTask, measure_tags
from keras_attn.tokenizers import split_words
from keras_attn.training.run_texts import reported
from keras_attn.training.task_runs.base import MOST_TOKENS
from keras_attn.training.task_runs.classification import ClassificationRun
from keras_attn.training.task_runs.encoders import encoder_of, other_starts
from keras_attn.validation import require, require_one_of


class TokenClassificationRun(ClassificationRun):
    """Trains an encoder and a head on texts with a tag for each word, the targets of the pairs."""

    task_class = TokenClassificationTask
    items = "texts"
    model_settings = ()
    known_data = ()
    known_metrics = tuple(TAGGING)
    other_starts = other_starts(TokenClassificationTask)

    def goal(self, metric):
        require_one_of("metric", metric, TAGGING)
        return "max"

    def default_metrics(self, data):
        return ["tag_accuracy", "span_f1"]

    def known(self, paths, data):
        return {}

    def read_test(self, paths, data):
        require(
            len(paths) in (1, 2),
            "Data must be one tab-separated file, or a file of texts and one of their tags.",
            data=list(paths),
        )
        return reported(read_tagged_texts(paths, data.skip_bad_lines))

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        # A rare tag may be in the held-out texts alone: it is never predicted, and counts as wrong.
        return TaggedExamples.from_pairs(
            texts,
            tokenizers["text"],
            self.labels(texts, task),
            settings.data.max_source_length or MOST_TOKENS,
            other_tags=held_out,
        )

    def task(self, settings, texts, tokenizers, source_task):
        labels, tokenizer = self.labels(texts, source_task), tokenizers["text"]
        longest = settings.data.max_source_length
        if source_task:
            model = source_task.backbone
        else:
            model = self.classifier(settings, labels, longest, tokenizer.vocabulary_size)
        return TokenClassificationTask(model, tokenizer, labels, longest)

    def with_new_head(self, source_task, settings, texts):
        labels = self.labels(texts, None)
        head = self.on_top_of(encoder_of(source_task), labels, settings.model)
        return TokenClassificationTask(head, source_task.tokenizer, labels, source_task.max_length)

    def source_lengths(self, task, sources):
        return task.lengths(sources)

    def measure(self, task, texts, metrics, beams=None, perplexity=False, progress=None):
        self.refuse_search(beams, perplexity)
        return measure_tags(task, texts, metrics, progress)

    def all_labels(self, texts):
        return [tag for tags in texts.targets for tag in split_words(tags)]

    def on_top_of(self, encoder, labels, head):
        dropout = encoder.get_config().get("dropout", 0.0)
        return TokenClassifier(encoder, len(labels), dropout=dropout)
