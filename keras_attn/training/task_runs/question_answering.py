"""Runs of tasks from questions and contexts to answers."""

from typing import ClassVar

import numpy as np

from keras_attn.data import Pairs, QuestionExamples, Questions, read_questions
from keras_attn.data.questions import ROLES, START, mistake_of_answer
from keras_attn.evaluation import ANSWERS
from keras_attn.evaluation.answers import answer_exact_match, answer_f1
from keras_attn.models import TokenClassifier
from keras_attn.tasks import QuestionAnsweringTask
from keras_attn.tasks.measuring.answered import answer_scores, answers_to, references_of
from keras_attn.tasks.question_answering import Answer
from keras_attn.tokenizers.question_windows import WindowFormat
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.training.reporting.errors import Baseline, Judged
from keras_attn.training.run_texts import hold_out_pairs, reported
from keras_attn.training.task_runs.heads import HeadRun
from keras_attn.validation import require

_MOST_TOKENS = 384
_SHOWN = 4


class QuestionAnsweringRun(HeadRun):
    """Trains an encoder and a head on questions whose answers are parts of a context.

    Questions of the same context are held out together.
    """

    task_class = QuestionAnsweringTask
    columns = ROLES
    optional_columns = (START,)
    mistake = staticmethod(mistake_of_answer)
    known_data: ClassVar = {}
    known_metrics = ANSWERS
    items = "questions"
    long_texts = ("cut",)
    head_class = TokenClassifier
    model_settings = ()
    most_tokens = _MOST_TOKENS

    def check(self, settings):
        super().check(settings)
        self.refuse_consistency(settings)
        require(
            settings.training.label_smoothing == 0,
            "Places are not smoothed: `training.label_smoothing` must be 0.",
            label_smoothing=settings.training.label_smoothing,
        )

    def default_metrics(self, data):
        return list(ANSWERS)

    def read_files(self, paths, data):
        how = (data.skip_bad_lines, data.columns, data.encoding)
        return reported(read_questions(paths, *how), "questions")

    def read_test(self, paths, data):
        return self.read_files(paths, data)

    def hold_out(self, texts, data, seed):
        contexts = [source.partition(BETWEEN)[2] for source in texts.sources]
        train, held_out = hold_out_pairs(Pairs(contexts, range(len(texts)), texts.name), data, seed)
        return texts.select(train.targets), texts.select(held_out.targets, held_out.name)

    def columns_of(self, texts, roles):
        parts = (part for source in texts.sources for part in source.split(BETWEEN))
        return [list(dict.fromkeys(parts))]

    def head_of(self, texts, task):
        return ()

    def targets(self, texts, task, held_out):
        return np.array(texts.starts)

    def on_top_of(self, encoder, head, options, transform=None):
        return super().on_top_of(encoder, (["begin", "end"],), options, transform)

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        form = self.pair_format(settings, task)
        length = settings.data.max_source_length or self.most_tokens
        windows = WindowFormat(length, ends_between=form["ends_between"])
        windows = task.window_format if held_out else self._fitting(windows)
        return QuestionExamples.from_questions(texts, tokenizers["text"], windows, form["segments"])

    @staticmethod
    def _fitting(form: WindowFormat) -> WindowFormat:
        """The format of a task of that length."""
        room = form.max_length - 2 - form.ends_between
        most = min(form.max_question_length, max(room // 2, 1))
        return WindowFormat(form.max_length, form.overlap, most, form.ends_between)

    def made(self, model, tokenizers, head, settings, source_task):
        longest, _ = self.longest(settings, source_task)
        how = self.pairs_after(source_task, model, tokenizers["text"])
        return self.task_class(model, tokenizers["text"], longest, **how)

    def task(self, settings, texts, tokenizers, source_task):
        model = super().task(settings, texts, tokenizers, source_task).backbone
        return self.task_class(
            model,
            tokenizers["text"],
            settings.data.max_source_length,
            no_answer=not all(texts.targets),
            **self.pair_format(settings, source_task),
        )

    def check_test(self, settings, texts, task):
        pass  # Longer contexts are read in windows.

    def described(self, texts):
        without = sum(not answers for answers in texts.targets)
        contexts = len({source.partition(BETWEEN)[2] for source in texts.sources})
        return [f"  contexts: {contexts:,}; {without:,} questions have no answer in theirs"]

    def held_out_inputs(self, task, texts):
        return texts.sources[:_SHOWN]

    def first(self, texts, examples, most):
        wanted = dict.fromkeys(list(dict.fromkeys(texts.sources))[:most])
        return texts.select([row for row, one in enumerate(texts.sources) if one in wanted])

    def answers(self, task, texts, beams=None, progress=None):
        return answers_to(task, texts, progress)

    def scores(self, texts, answers, metrics):
        return answer_scores(texts, answers, metrics)

    def judged(self, texts: Questions, answers):
        """Judges answers by their F1: the error is what is missing to 1."""
        judged = []
        for source, right in references_of(texts).items():
            found, question = answers[source].text, source.replace(BETWEEN, " / ")
            exact = answer_exact_match(found, right)
            error = 0.0 if exact else 1 - answer_f1(found, right) / 100
            judged.append(Judged(question, " / ".join(dict.fromkeys(right)), found, error))
        return judged

    def baseline(self, texts, metrics, task=None):
        """Measures the whole context as the answer to everything."""
        whole = {
            source: Answer(source.partition(BETWEEN)[2], 1.0, 0, 0) for source in texts.sources
        }
        values = answer_scores(texts, whole, metrics)
        return Baseline("the whole context", {name: values[name] for name in metrics})

    def charts(self, task, texts, answers):
        return {}
