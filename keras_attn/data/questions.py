"""Questions with contexts and the answers in them: SQuAD's files, and tables."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keras_attn.data.files import Pairs, joined_names
from keras_attn.data.reading.columns import select
from keras_attn.data.reading.delimited import TabSeparatedTable
from keras_attn.data.reading.lines import excerpt
from keras_attn.data.reading.paths import expanded
from keras_attn.data.reading.rows import Form, Reading, Row
from keras_attn.data.reading.table import Table
from keras_attn.data.reading.tables import open_table
from keras_attn.documents import read_json
from keras_attn.tokenizers.text_pairs import BETWEEN
from keras_attn.validation import UserError, is_integer, require

ROLES = ("question", "context", "answer")
START = "start"
"""Parts of an example."""

_LISTED = ("question", "context", "answers.text", "answers.answer_start")


@dataclass
class Questions(Pairs[str]):
    r"""Questions and contexts as sources, with a tab between them, and answers.

    Attributes:
        targets: The right answers of each, a tuple of texts; empty if there is none.
        starts: Where the first of them begins in the context, in characters; -1 for none.

    Examples:
        >>> questions = Questions(["who?\tanna sings"], [("anna",)], starts=[0])
        >>> questions.targets[0]
        ('anna',)
    """

    starts: list[int] = field(default_factory=list)

    def select(self, rows: Sequence[int], name: str | None = None) -> "Questions":
        """Some of the questions, under another name."""
        return replace(
            self,
            sources=[self.sources[row] for row in rows],
            targets=[self.targets[row] for row in rows],
            starts=[self.starts[row] for row in rows],
            name=name or self.name,
        )


def read_questions(
    paths: Sequence[str | os.PathLike] | str | os.PathLike,
    skip_bad_lines: bool = False,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
) -> Questions:
    r"""Reads questions, contexts and answers, under the rules of `read_pairs`.

    Tabs in a text become spaces, so that places stay the same.

    Args:
        paths: JSON files in SQuAD's form, with questions that may have no answer; JSON lines or
            Parquet with an object `answers` of lists `text` and `answer_start`, as SQuAD has in
            the `datasets` library; or tables of `question`, `context`, `answer` and perhaps
            `start`, where the answer begins in the context, in characters from 0. Without it, the
            answer must occur once.
        skip_bad_lines: Whether malformed rows are left out and counted instead of raising.
        columns: Column of each in a table, by default the usual ones.
        encoding: Encoding of the tables, UTF-8 by default.

    Returns:
        The questions, in the order of the files.

    Raises:
        UserError: See `read_pairs`; or an answer is not where it should be, or nowhere.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("qa.csv").write_text("question,context,answer\nwho?,anna sings,anna\n")
        >>> read_questions("qa.csv").starts
        [0]
    """
    files = expanded(paths)
    reading = Reading(joined_names(files), Form(columns, encoding, skip_bad_lines))
    whole, table = squad_rows(files, columns, encoding)
    if table is None:
        rows = reading.good(whole)
    else:
        roles, _ = select(table, ROLES, columns, (START,))
        rows = reading.good(reading.tables(files, roles, mistake=mistake_of_answer))
    examples = (_example(*fields) for fields in rows)
    sources, targets, starts = map(list, zip(*examples, strict=True))
    notes = reading.remarks
    return Questions(sources, targets, reading.name, reading.skipped, notes, starts=starts)


def squad_rows(
    files: Sequence[str], columns: Mapping[str, str | int] | None, encoding: str | None
) -> tuple[Iterator[Row], Table | None]:
    """The questions of files in SQuAD's form: question, context, answers and start.

    Args:
        files: The files, whose names or columns show their form.
        columns: Columns by role, which no such file has.
        encoding: Encoding of the tables, UTF-8 by default.

    Returns:
        The rows and `None`; for other tables no rows and the first table, opened once.
    """
    if columns is None and all(file.lower().endswith(".json") for file in files):
        return (row for file in files for row in _squad_rows(file)), None
    first, *others = files
    table = open_table(first, TabSeparatedTable, encoding, skip_bad_lines=True)
    if columns is not None or not {*_LISTED} <= {*(table.names or ())}:
        return iter(()), table
    rest = (open_table(one, TabSeparatedTable, encoding, skip_bad_lines=True) for one in others)
    return (row for one in itertools.chain([table], rest) for row in _listed_rows(one)), None


def _plain(text: str) -> str:
    return text.replace("\t", " ")


def _example(
    question: str, context: str, answers: str | tuple[str, ...], start: float | None = None
) -> tuple[str, tuple[str, ...], int]:
    """The source, the answers, and where the first of them begins."""
    context = _plain(context)
    answers = (answers,) if isinstance(answers, str) else answers
    answers = tuple(dict.fromkeys(map(_plain, answers)))
    place = context.find(answers[0]) if start is None else int(start)
    return f"{_plain(question)}{BETWEEN}{context}", answers, place


def mistake_of_answer(
    question: str, context: str, answer: str, start: float | None = None
) -> str | None:
    """Describes an answer that is not where it should be, or returns `None`."""
    context, answer = _plain(context), _plain(answer)
    if start is not None:
        found = context[int(start) : int(start) + len(answer)] if start >= 0 else ""
        if found == answer:
            return None
        return f"expected the answer at {start:g} of the context, found {excerpt(found)} there"
    count = sum(context.startswith(answer, place) for place in range(len(context)))
    if count == 1:
        return None
    hint = "; a column `start` says which one it is" if count else ""
    return f"expected the answer once in the context, found it {count:,} times{hint}"


def _listed_rows(table: Table) -> Iterator[Row]:
    """Yields the questions of a table whose answers are lists."""
    for record in table.records(_LISTED):
        place = table.place(record)
        if record.mistake is not None:
            yield Row((), f"{place}: {record.mistake}")
            continue
        question, context, texts, starts = (record.cells[name] for name in _LISTED)
        are_lists = isinstance(texts, list) and isinstance(starts, list)
        fits = are_lists and len(texts) == len(starts) and all(map(is_integer, starts))
        if not (fits and all(isinstance(one, str) for one in (question, context, *texts))):
            yield Row((), f"{place}: expected texts, and lists of answers and of their places")
            continue
        answers = [
            {"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)
        ]
        yield _of_squad({"question": question, "answers": answers}, context, place)


def _squad_rows(path: str) -> Iterator[Row]:
    content = read_json(path)
    articles: Any = content.get("data") if isinstance(content, dict) else None
    require(
        isinstance(articles, list),
        f"{path}: a file of questions in SQuAD's form has an object with a list `data`; tables are "
        "named *.jsonl, *.csv or *.tsv.",
        found=type(content).__name__,
    )
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    place = f"{path}, question {one.get('id')}"
                    yield _of_squad(one, paragraph["context"], place)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not in SQuAD's form: {error!r}.") from error


def _of_squad(one: Mapping[str, Any], context: str, place: str) -> Row:
    answers = [] if one.get("is_impossible") else one["answers"]
    for answer in answers:
        wrong = mistake_of_answer("", context, answer["text"], answer["answer_start"])
        if wrong:
            return Row((), f"{place}: {wrong}")
    texts = tuple(answer["text"] for answer in answers)
    start = answers[0]["answer_start"] if answers else -1
    return Row((one["question"], context, texts, start))
