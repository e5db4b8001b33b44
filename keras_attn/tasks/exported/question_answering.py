"""Exported tasks that answer questions."""

from collections.abc import Callable, Sequence
from operator import itemgetter

from keras_attn.tasks.exported.base import Exported
from keras_attn.tasks.question_answering import Answer, checked_questions
from keras_attn.tokenizers.text_pairs import BETWEEN


class ExportedQuestionAnswering(Exported):
    """An exported `QuestionAnsweringTask`, as `keras_attn.load` returns it.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> model = TokenClassifier(Bert(9, **sizes), num_classes=2)
        >>> task = QuestionAnsweringTask(model, CharacterTokenizer("abc ?"), max_length=32)
        >>> folder = task.export("exported/demo")
        >>> exported = open_exported("exported/demo")
        >>> exported.answer("a?", "b cab").text == task.answer("a?", "b cab").text
        True
    """

    kind = "question_answering"
    needs = frozenset({"serving_default"})

    def predict(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[str]:
        """Predicts the texts of answers (see `QuestionAnsweringTask.predict`)."""
        return [answer.text for answer in self.answers(inputs, progress)]

    def answer(self, question: str, context: str) -> Answer:
        """Answers a question (see `QuestionAnsweringTask.answer`)."""
        return self.answers([f"{question}{BETWEEN}{context.replace(BETWEEN, ' ')}"])[0]

    def answers(
        self, inputs: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[Answer]:
        """Predicts answers with their scores and places (see the task's `answers`)."""
        questions, contexts = checked_questions(inputs)
        rows = self._in_batches(
            "serving_default",
            itemgetter("answer", "score", "start", "end"),
            progress,
            # Contexts first: batches are of similar lengths of these.
            context=contexts,
            question=questions,
        )
        return [
            Answer(text.decode(), float(score), int(start), int(end))
            for text, score, start, end in rows
        ]
