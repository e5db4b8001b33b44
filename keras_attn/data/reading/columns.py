"""Columns of a table as the parts of an example."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keras_attn.data.reading.several import number_in
from keras_attn.data.reading.table import Key, Table, shown_names
from keras_attn.data.reading.tables import ConllTable
from keras_attn.validation import UserError, require, require_one_of

ROLES: dict[str, tuple[str, ...]] = {
    "text": (
        *("text", "texts", "sentence", "sentence1", "review", "content", "document", "body"),
        *("comment", "message", "tweet", "title", "headline", "abstract", "question", "query"),
        *("words", "tokens", "utterance", "description", "premise", "anchor"),
    ),
    "label": (
        *("label", "labels", "class", "category", "sentiment", "intent", "topic", "target"),
        *("stars", "rating", "polarity", "classes", "categories", "topics", "genres"),
    ),
    "number": (
        *("number", "numbers", "value", "values", "score", "target", "targets", "rating", "stars"),
        *("price", "label", "labels", "y"),
    ),
    "source": ("source", "src", "input", "word", "grapheme", "graphemes", "article", "text"),
    "target": (
        *("target", "tgt", "trg", "output", "translation", "summary", "phonemes", "phoneme"),
        *("pronunciation", "ipa", "highlights", "answer"),
    ),
    "tags": ("tags", "tag", "ner_tags", "pos_tags", "labels", "label", "ner"),
    "other": ("other", "text2", "sentence2", "positive", "hypothesis", "paraphrase", "answer"),
    "score": ("score", "similarity", "similarity_score", "relatedness"),
    "query": ("query", "question", "anchor", "text", "sentence1", "search_query"),
    "passage": (
        *("passage", "document", "answer", "positive", "context", "text2", "sentence2", "response"),
        *("doc", "title"),
    ),
    "question": ("question", "query"),
    "context": ("context", "paragraph", "passage", "document", "text"),
    "answer": ("answer", "answer_text", "answers", "target"),
    "start": ("start", "answer_start"),
    "relevance": ("relevance", "label", "score", "grade", "rating", "judgment"),
    "file": ("file", "file_name", "filename", "image", "path"),
}
"""Parts of examples, with the usual names of their columns, the first one before others."""

_HEADER = {name for names in ROLES.values() for name in names}
_LOOKED_AT = 100  # rows that show whether the first one is an example
_ENOUGH = 10
_NEARLY_ALL = 0.9
_MOST_WORDS = 3  # of a name
_TAG = re.compile("O|[BIESLU]-.*")


class Selection(NamedTuple):
    """The columns to read.

    Attributes:
        keys: The column of each role.
        has_header: Whether the first row holds the names of the columns.
        width: Number of columns that each row must have, or `None` if it does not matter.
        note: A line for users about what was chosen for them, or "".
    """

    keys: tuple[Key, ...]
    has_header: bool = False
    width: int | None = None
    note: str = ""


def check_columns(columns: Mapping[str, str | int] | None, roles: Sequence[str]) -> None:
    """Raises `UserError` unless columns are given by the parts of a task's examples."""
    for role, column in (columns or {}).items():
        require_one_of("columns", role, roles)
        require(
            isinstance(column, int | str) and column != "" and not isinstance(column, bool),
            "`columns` must be names or numbers of columns.",
            **{role: column},
        )


def select(
    table: Table,
    roles: Sequence[str],
    columns: Mapping[str, str | int] | None = None,
    optional: Sequence[str] = (),
) -> tuple[tuple[str, ...], Selection]:
    """Chooses the columns of a table.

    Args:
        table: The table.
        roles: The parts of an example.
        columns: Column of each, a name or a number from 1; looked for by default.
        optional: Parts that a table may lack.

    Returns:
        The parts that the table has, and their columns.

    Raises:
        UserError: There is no such column, or it is not clear which one is meant.
    """
    check_columns(columns, [*roles, *optional])
    if columns:
        wanted = tuple(role for role in (*roles, *optional) if role in columns)
        missing = [role for role in roles if role not in columns]
        if missing:
            raise UserError(
                f"`columns` must have one for each of {', '.join(roles)}; it lacks {missing[0]}."
            )
        return wanted, _given(table, [_key(columns[role]) for role in wanted])
    return _found(table, tuple(roles), tuple(optional))


def _key(column: str | int) -> Key:
    """A number from 1 as an index, or a name."""
    text = str(column)
    return int(text) - 1 if text.isascii() and text.isdecimal() and text != "0" else text


def _given(table: Table, keys: list[Key]) -> Selection:
    numbers = [key for key in keys if isinstance(key, int)]
    if table.names is not None:
        names = [key if isinstance(key, str) else str(key + 1) for key in keys]
        for name in names:
            require_column(table, name, table.names)
        return Selection(tuple(names))
    if table.first is None:  # sentences
        require(
            len(numbers) == len(keys),
            f"{table.path}: columns are given by their numbers.",
            columns=keys,
        )
        return Selection(tuple(numbers))
    names = [cell.strip() for cell in table.first]
    for number in numbers:
        require(
            number < len(names),
            f"{table.path} has {len(names)} columns in its first line, {shown_names(names)}.",
            column=number + 1,
        )
    if len(numbers) == len(keys):
        numbered = [str(number) for number in range(len(names))]  # by pandas
        has_header = names == numbered or all(_is_header(names[number]) for number in numbers)
        note = f"the first line holds names of columns: {shown_names(names)}" if has_header else ""
        return Selection(tuple(numbers), has_header, len(names), note)
    indices = []
    for key in keys:
        if isinstance(key, str):
            require_column(table, key, names)
        indices.append(names.index(key) if isinstance(key, str) else key)
    return Selection(tuple(indices), True, len(names))


def _found(
    table: Table, roles: tuple[str, ...], optional: tuple[str, ...]
) -> tuple[tuple[str, ...], Selection]:
    if isinstance(table, ConllTable):
        require(
            table.width >= len(roles),
            f"{table.path}: the words of its sentences need {len(roles)} columns, for "
            f"{' and '.join(roles)}.",
            columns=table.width,
        )
        chosen = table.usual_columns[: len(roles)]
        _check_words(table, table.column(chosen[0]))
        note = ""
        if table.width > len(roles):
            read = ", ".join(f"{role}={key + 1}" for role, key in zip(roles, chosen, strict=False))
            note = f"columns {read} of {table.width}; the others are not read"
        return roles, Selection(chosen, note=note)
    if table.names is not None:
        return _by_names(table, table.names, roles, optional, False)
    names = [cell.strip() for cell in table.first or ()]
    usual = [any(name.casefold() in ROLES[role] for name in names) for role in roles]
    if all(usual) and (table.expects_header or all(map(_is_header, names))):
        return _by_names(table, names, roles, optional, True)
    if table.expects_header and len(names) < len(roles):
        raise UserError(
            f"{table.path}: a column is needed for each of {', '.join(roles)}; the first line has "
            f"{shown_names(names)}."
        )
    by_name = " ".join(f"{role}=NAME" for role in roles)
    if table.expects_header and any(usual):
        missing = " and ".join(role for role, one in zip(roles, usual, strict=True) if not one)
        raise UserError(
            f"{table.path}: none of the columns {shown_names(names)} has a usual name for the "
            f"{missing}. Set `columns` (--columns {by_name}), if there is one."
        )
    is_header = len(names) >= len(roles) and looks_like_names(table)
    if table.expects_header and not (is_header and len(names) == len(roles)):
        by_number = " ".join(f"{role}={number}" for number, role in enumerate(roles, 1))
        raise UserError(
            f"{table.path}: is the first line, {shown_names(names)}, an example or the names of "
            f"the columns? Set `columns` (--columns {by_number}, or where they are, for an "
            f"example; --columns {by_name} for names)."
        )
    if len(roles) == 1 and len(names) > 1 + len(optional):
        raise UserError(
            f"{table.path} has {len(names)} columns: which one is the {roles[0]}? Set `columns` "
            f"(--columns {roles[0]}=1)."
        )
    found = roles + optional[: max(len(names) - len(roles), 0)]
    note = ""
    if is_header:
        by_number = " ".join(f"{role}={number}" for number, role in enumerate(found, 1))
        note = f"the first line, {shown_names(names)}, is taken for names of columns; if it is an "
        note += f"example, set --columns {by_number}"
    return found, Selection(tuple(range(len(found))), is_header, len(found), note)


def _check_words(table: ConllTable, words: Sequence[str]) -> None:
    """Raises if the words of the first sentence are their numbers, or tags."""
    are_numbers = [*words] in (
        [*map(str, range(1, len(words) + 1))],
        [*map(str, range(len(words)))],
    )
    if are_numbers or (all(map(_TAG.fullmatch, words)) and set(words) != {"O"}):
        raise UserError(
            f"{table.path}: the words of the first sentence would be {shown_names(words)}; which "
            f"of its {table.width} columns are the words and the tags? Set `columns` (--columns "
            f"text=2 tags={table.width if are_numbers else 1})."
        )


def has_header(table: Table) -> bool:
    """Whether the first row of a table holds names of columns: usual ones, in any form of task."""
    names = [cell.strip() for cell in table.first or ()]
    known = [_is_header(name) for name in names]
    return bool(names) and (all(known) or (table.expects_header and sum(known) > 1))


def looks_like_names(table: Table) -> bool:
    """Whether the first row seems to hold names of columns: few words each, and no numbers.

    No cell of it recurs in its column. And one is alone in a column whose other values all recur:
    such a column holds labels, and the first cell is none. Or all other values of a column are
    numbers. Or a cell is a word that does not occur below it, where nearly all cells are several
    words that recur, such as phonemes. Or so are all its cells, whether words recur or not.
    """
    rows = table.sample(_LOOKED_AT)
    if len(rows) < _ENOUGH or any(len(row) != len(rows[0]) for row in rows):
        return False
    if any(number_in(cell)[1] is None or len(cell.split()) > _MOST_WORDS for cell in rows[0]):
        return False
    columns = list(zip(*rows, strict=True))
    if any(first in others for first, *others in columns):
        return False
    for first, *others in columns:
        numbers = all(number_in(table.plain_number(cell))[1] is None for cell in others)
        if numbers or _are_labels(others) or _is_no_row_of_symbols(first, others):
            return True
    return all(map(_is_alone_before_longer, rows[0], zip(*rows[1:], strict=True)))


def _are_labels(others: Sequence[str]) -> bool:
    return min(Counter(others).values()) > 1


def _is_no_row_of_symbols(first: str, others: Sequence[str]) -> bool:
    words = Counter(word for cell in others for word in cell.split())
    recurring = sum(count for count in words.values() if count > 1)
    return _is_alone_before_longer(first, others) and recurring > _NEARLY_ALL * words.total()


def _is_alone_before_longer(first: str, others: Sequence[str]) -> bool:
    """Whether a cell is a word that no other has, where nearly all others are several words."""
    longer = sum(len(cell.split()) > 1 for cell in others)
    words = {word.casefold() for cell in others for word in cell.split()}
    return (
        len(first.split()) == 1
        and first.strip().casefold() not in words
        and longer > _NEARLY_ALL * len(others)
    )


def columns_by_names(
    table: str, names: Sequence[str], roles: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, int]:
    """Finds columns by their usual names; those of other names by their order.

    Args:
        table: The table in messages.
        names: Names of its columns.
        roles: The parts of an example.
        optional: Parts that a table may lack.

    Returns:
        The index of the column of each part.

    Raises:
        UserError: It is not clear which column a part is.
    """
    lower = [name.casefold() for name in names]
    chosen: dict[str, int] = {}
    for role in (*roles, *optional):
        usual = (name for name in ROLES[role] if name in lower)
        index = next((i for i in map(lower.index, usual) if i not in chosen.values()), None)
        if index is not None:
            chosen[role] = index
    missing = [role for role in roles if role not in chosen]
    if missing and len(names) == len(roles):
        rest = [index for index in range(len(names)) if index not in chosen.values()]
        chosen |= dict(zip(missing, rest, strict=True))
    elif missing:
        options = " ".join(f"{role}=NAME" for role in roles)
        raise UserError(
            f"{table}: which of the columns {shown_names(names)} is the {missing[0]}? Set "
            f"`columns` (--columns {options})."
        )
    return {role: chosen[role] for role in (*roles, *optional) if role in chosen}


def require_column(table: Table, name: str, names: Sequence[str]) -> None:
    """Raises `UserError` unless one column has a name, and no more."""
    places = [str(place) for place, one in enumerate(names, 1) if one == name]
    if not places:
        several = " Each part is one column, which may hold several labels or numbers."
        raise UserError(
            f"{table.path} has no column {name!r}; it has {shown_names(names)}."
            f"{several if ',' in name else ''}"
        )
    if len(places) > 1:
        hint = (
            "rename all but one" if table.names is not None else "give numbers (--columns PART=N)"
        )
        raise UserError(
            f"{table.path}: the columns {' and '.join(places)} are all called {name!r}; {hint}."
        )


def _by_names(
    table: Table,
    names: list[str],
    roles: tuple[str, ...],
    optional: tuple[str, ...],
    has_header: bool,
) -> tuple[tuple[str, ...], Selection]:
    chosen = columns_by_names(table.path, names, roles, optional)
    for index in chosen.values():
        require_column(table, names[index], names)
    keys = tuple(index if has_header else names[index] for index in chosen.values())
    shown = ", ".join(f"{role}={names[index]}" for role, index in chosen.items())
    others = [name for at, name in enumerate(names) if name and at not in chosen.values()]
    # That a column is what it is called needs no line.
    is_plain = not has_header and all(role == names[index] for role, index in chosen.items())
    note = "" if is_plain and not others else f"columns {shown}"
    if others:
        note += f"; not read: {shown_names(others)}"
    return tuple(chosen), Selection(keys, has_header, len(names) if has_header else None, note)


def _is_header(cell: str) -> bool:
    return cell.strip().casefold() in _HEADER
