"""Series of all forms of tables give the same values; odd files give one line or the right ones."""

import datetime
import json

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from keras_attn.data.series.memory import read_given
from keras_attn.data.series.reading import described, read_series
from keras_attn.data.series.season import find_season
from keras_attn.data.series.times import on_steps, time_axis
from tests.refusals import refused_in_one_line

pytestmark = pytest.mark.tensorflow

COLUMNS = {
    "time": "day",
    "target": "sold,seen",
    "known": "off",
    "unknown": "price",
    "series": "shop",
}
# Unsorted, with a gap on the third and a missing value.
ROWS = [
    ("2024-03-02", "a", 3, 30, 0, 1.5),
    ("2024-03-01", "a", 1, 10, 1, 1.25),
    ("2024-03-04", "a", 7, 70, 0, 2),
    ("2024-03-01", "b", 5, None, 1, 3),
    ("2024-03-02", "b", 9, 90, 0, 4),
]
NAMES = ("day", "shop", "sold", "seen", "off", "price")
NAN = float("nan")
# Channels: sold, seen, price, off.
VALUES = {
    "a": [[1, 10, 1.25, 1], [3, 30, 1.5, 0], [NAN] * 4, [7, 70, 2, 0]],
    "b": [[5, NAN, 3, 1], [9, 90, 4, 0]],
}


def as_lines(separator):
    cells = [["" if cell is None else str(cell) for cell in row] for row in [NAMES, *ROWS]]
    return "\n".join(separator.join(row) for row in cells) + "\n"


def as_dicts():
    return [dict(zip(NAMES, row, strict=True)) for row in ROWS]


def as_table(dates):
    columns = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
    if dates:
        columns["day"] = [datetime.date.fromisoformat(day) for day in columns["day"]]
    return columns


def parquet(path):
    pyarrow.parquet.write_table(pyarrow.table(as_table(True)), path)


FORMS = {
    "a.csv": lambda path: path.write_text(as_lines(",")),
    "b.csv": lambda path: path.write_text(as_lines(";")),
    "a.tsv": lambda path: path.write_text(as_lines("\t")),
    "a.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, as_dicts()))),
    "a.parquet": parquet,
}
GIVEN = {
    "frame": lambda: pandas.DataFrame(as_table(False)),
    "frame of dates": lambda: pandas.DataFrame(as_table(True)).assign(
        day=lambda frame: pandas.to_datetime(frame.day)
    ),
    "columns": lambda: as_table(True),
    "dicts": as_dicts,
}


def check(table):
    assert table.ids == ["a", "b"]
    assert table.channels == ("sold", "seen", "price", "off")
    for name, values in zip(table.ids, table.values, strict=True):
        np.testing.assert_array_equal(values, VALUES[name])
    assert [table.time(0, step)[:10] for step in (0, 3, 4)] == [
        "2024-03-01",
        "2024-03-04",
        "2024-03-05",
    ]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_table(name, tmp_path):
    FORMS[name](tmp_path / name)
    check(read_series(tmp_path / name, COLUMNS))


@pytest.mark.parametrize("name", GIVEN)
def test_tables_in_memory(name):
    check(read_given(GIVEN[name](), COLUMNS))


def test_an_array_has_the_channels_in_their_order():
    values = np.array([[1.0, np.nan], [2, 5], [3, 6]])
    table = read_given(values)
    np.testing.assert_array_equal(table.values[0], values)
    assert table.channels == ("target_1", "target_2")
    table = read_given(values, {"known": "k", "target": "t"})
    assert table.channels == ("t", "k")
    refused_in_one_line(
        "a channel for each .*shape=.3, 2., columns=.'t'", read_given, values, {"target": "t"}
    )
    refused_in_one_line("Received: object", read_given, object())


def test_lines_for_users_count_what_is_missing_unsorted_and_constant(tmp_path):
    (tmp_path / "a.csv").write_text(as_lines(","))
    lines = "\n".join(described(read_series(tmp_path / "a.csv", COLUMNS)))
    for part in (
        "1 rows come after a later one",
        "2 of 2 to 4 steps of 1 day",
        "1 of 6 values of sold",
    ):
        assert part in lines
    (tmp_path / "b.csv").write_text("y\n5\n5\n")
    assert "y never changes in 1 series" in "\n".join(described(read_series(tmp_path / "b.csv")))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([3.5, -99.99, 4.5, -99.99], "-99.99 occurs 2 times in y"),
        ([3.5, 999, 4.5, 4.0], "999 occurs 1 times in y"),
        ([97, 99, 98, 96], None),
        ([1e12 + 1, 1e12 + 2, 1e12 + 4], "y changes by less than float32 holds"),
        ([1e3 + 1, 1e3 + 2, 1e3 + 4], None),
    ],
)
def test_values_that_may_mean_something_else_are_named(values, line):
    doubts = described(read_given({"y": values}))[2:]
    assert len(doubts) == (line is not None)
    assert line is None or line in doubts[0]


DAYS = "day,y\n2024-03-01,1\n2024-03-02,2\n"
# The text of a file, options, and the error or the values of the first series.
ODD = {
    "header alone": ("day,y\n", {}, "there is no example"),
    "no target": ("day,y\n1,\n2,\n", {"columns": {"time": "day", "target": "y"}}, [NAN, NAN]),
    "one column": ("y\n3\n4\n", {}, [3, 4]),
    "one column without a name": ("3\n4\n", {}, [3, 4]),
    "t is the time": ("y,t\n3,2\n4,1\n", {}, [4, 3]),
    "t beside a time": ("t,date\n3,2024-03-02\n4,2024-03-01\n", {}, [4, 3]),
    "unclear": ("a,b\n1,2\n", {}, "which of the columns 'a', 'b' are the targets"),
    "unknown column": (DAYS, {"columns": {"target": "z"}}, "no column 'z'; it has 'day', 'y'"),
    "unknown role": (DAYS, {"columns": {"label": "y"}}, "`columns` must be one of 'time'"),
    "no target column": (DAYS, {"columns": {"time": "day"}}, "must have a target"),
    "one column twice": (DAYS, {"columns": {"time": "y", "target": "y"}}, "one part only"),
    "by number": (DAYS, {"columns": {"time": 1, "target": 2}}, [1, 2]),
    "a word": (DAYS + "2024-03-03,many\n", {}, "line 4, column 2: expected a number .* 'many'"),
    "a decimal comma": ("day;y\n1;2,5\n2;-13,25\n", {}, [2.5, -13.25]),
    "points of thousands": ("day;y\n1;1.100\n2;1.200,5\n3;9\n", {}, [1100, 1200.5, 9]),
    "points without commas": ("day;y\n1;1.100\n2;1.2005\n3;9\n", {}, [1.1, 1.2005, 9]),
    "two commas": ("day;y\n1;2,5\n2;3,5,1\n", {}, "a number such as 1234.5, found '3,5,1'"),
    "a comma in a TSV": ("day\ty\n1\t2,5\n2\t1.300,5\n", {}, [2.5, 1300.5]),
    "perhaps thousands in a TSV": ("day\ty\n1\t2,500\n", {}, "found '2,500'"),
    "a comma in quotes": ('day,y\n1,"2,5"\n2,3\n', {}, [2.5, 3]),
    "perhaps thousands in quotes": ('day,y\n1,"2,500"\n', {}, "found '2,500'"),
    "days first": ("day;y\n30.12.2023;1\n31.12.2023;2\n2.1.2024;4\n", {}, [1, 2, NAN, 4]),
    "days first, hours": ("time;y\n30.12.2023 9:00;1\n30.12.2023 10:00;2\n", {}, [1, 2]),
    "no day": ("day;y\n30.13.2023;1\n", {}, "expected a number or a date .* found '30.13.2023'"),
    "infinity": (DAYS + "2024-03-03,inf\n", {}, "expected a number such as 1234.5, found 'inf'"),
    "a bad line left out": (DAYS + "x,7\n2024-03-04,8\n", {"skip_bad_lines": True}, [1, 2, NAN, 8]),
    "no date": (DAYS + "tomorrow,3\n", {}, "expected a number or a date .* found 'tomorrow'"),
    "day before month": (DAYS + "13/03/2024,3\n", {}, "found '13/03/2024'"),
    "dates and numbers": (DAYS + "7,3\n", {}, "must be numbers or dates, not both"),
    "a field too many": (DAYS + "2024-03-03,3,4\n", {}, "expected 2 fields"),
    "missing values": (DAYS + "2024-03-03,\n2024-03-04,NA\n2024-03-05,null\n2024-03-06,4\n", {},
                       [1, 2, NAN, NAN, NAN, 4]),
    "a day twice": (DAYS + "2024-03-02,3\n", {}, "1 rows have .*2024-03-02.*series=NAME"),
    "unequal": (DAYS + "2024-03-03 05:00,3\n", {}, "1 of 3 rows are .*time_steps=rows"),
    "unequal as rows": (DAYS + "2024-03-03 05:00,3\n", {"time_steps": "rows"}, [1, 2, 3]),
    "two far apart": (DAYS + "2034-03-03,3\n", {}, "only 3 of 3,655 steps of 1 day have a row"),
    "years": ("year,y\n1700,5\n1702,6\n1701,7\n", {}, [5, 7, 6]),
    "compact dates": ("date,y\n20240331,1\n20240407,2\n20240421,4\n", {}, [1, 2, NAN, 4]),
    "months": ("month,y\n2023-11,1\n2023-12,2\n2024-02,4\n", {}, [1, 2, NAN, 4]),
    "ends of months": ("date,y\n2024-01-31,1\n2024-02-29,2\n2024-03-31,3\n", {}, [1, 2, 3]),
    "compact months": ("month,y\n202311,1\n202312,2\n202402,4\n", {}, [1, 2, NAN, 4]),
    "compact weeks": ("week,y\n202352,1\n202401,2\n202403,4\n", {}, [1, 2, NAN, 4]),
    "numbers, not weeks": ("time,y\n202352,1\n202353,2\n202354,4\n", {}, [1, 2, 4]),
    "months with a dot": ("date,y\n2009.11,1\n2009.12,2\n2010.02,4\n", {}, [1, 2, NAN, 4]),
    "October without its zero": ("date,y\n2010.1,1\n2010.11,2\n2010.12,3\n", {}, [1, 2, 3]),
    "comments": (f"# by hand\n#\n{DAYS}", {}, [1, 2]),
    "lines after comments": (f"# by hand\n{DAYS}x,3\n", {}, "line 5, column 1: expected a number"),
    "comments alone": ("# nothing\n", {}, "the file has no row"),
    "a zone for one only": ("time,y\n2024-03-03T01:00Z,1\n2024-03-03T02:00,2\n", {},
                            "must be all in a time zone, or all without one"),
    "clocks set back": ("time,y\n" + "".join(
        f"2024-10-{27 + hour // 24}T{hour % 24:02}:00,1\n" for hour in [0, 1, 2, *range(2, 110)]
    ), {}, "1 rows have .*2024-10-27T02.*an hour occurs twice: write times in UTC"),
    "fiscal years": ("year,y\n2000/01,1\n2001/02,2\n2002/03,3\n", {}, "13 months apart here"),
    "beyond float32": (DAYS + "2024-03-03,1e300\n", {}, "found '1e300'"),
    "marks of statistics": (DAYS + "2024-03-03,.\n2024-03-04,:\n2024-03-05,5\n", {},
                            [1, 2, NAN, NAN, 5]),
    "no such way": (DAYS, {"time_steps": "row"}, "`time_steps` must be one of"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_files(name, tmp_path):
    text, options, expected = ODD[name]
    path = tmp_path / "odd.csv"
    path.write_text(text)
    if isinstance(expected, str):
        refused_in_one_line(expected, read_series, path, **options)
        return
    found = read_series(path, **options).values[0]
    np.testing.assert_array_equal(found[:, 0], expected)


def test_files_of_other_columns_are_refused(tmp_path):
    for name, header in (("a.csv", "day,y"), ("b.csv", "day,x")):
        (tmp_path / name).write_text(f"{header}\n1,2\n2,3\n")
    refused_in_one_line(
        "must have the same columns", read_series, [tmp_path / "a.csv", tmp_path / "b.csv"]
    )


# Times, the length of a step in words, the time after the last one.
TIMES = [
    (["1958-03-29", "1958-04-05", "1958-04-19"], "1 week", "1958-04-26"),
    ([19580329, 19580405], "1 week", "19580412"),
    ([200011, 200012], "1 month", "200101"),
    ([202052, 202053], "1 week", "202101"),
    (["2009.11", "2009.12"], "1 month", "2010.01"),
    ([1700, 1701, 1703], "1 unit", "1704"),
    ([0.5, 0.75, 1.25], "0.25 units", "1.5"),
    ([45292 + round(hour / 24, 6) for hour in range(300)], "0.0416667 units", "45304.5"),
    (["2024-11", "2024-12"], "1 month", "2025-01"),
    (["2024-01-31", "2024-02-29"], "1 month", "2024-03-31"),
    (["2024Q3", "2024Q4"], "3 months", "2025-01-01"),
    (["1999-07-01", "2000-07-01"], "1 year", "2001-07-01"),
    (["2024-02-28T22:00", "2024-02-28T23:00"], "1 hour", "2024-02-29T00:00:00"),
    (["2024-05-05T00:30+02:00", "2024-05-05T00:45+02:00"], "15 minutes", "2024-05-04T23:00:00"),
    (["2024/2/28", "2024/2/29"], "1 day", "2024-03-01"),
]


@pytest.mark.parametrize(("cells", "step", "following"), TIMES)
def test_steps_of_time(cells, step, following):
    axis, positions = time_axis(cells)
    assert axis.described() == step
    assert on_steps(positions).all()
    assert axis.written(positions[-1] + 1) == following


def wave(season, noise, steps=240, seed=1):
    draw = np.random.default_rng(seed)
    return np.sin(np.arange(steps) * 2 * np.pi / season) + noise * draw.normal(size=steps)


SEASONS = {
    "a wave": (wave(12, 0.3), 12),
    "on a trend": (wave(7, 0.3) + np.arange(240) / 9, 7),
    "on another scale": (1e6 + 1e3 * wave(12, 0.1), 12),
    "with gaps": (np.where(np.arange(240) % 11 == 3, np.nan, wave(12, 0.2)), 12),
    "noise": (wave(1, 1.0), 1),
    "a random walk": (np.cumsum(wave(1, 1.0)), 1),
    "a line": (np.arange(240.0), 1),
    "a constant": (np.full(240, 5.0), 1),
    "too short": (wave(12, 0.0, 20), 1),
}


@pytest.mark.parametrize("name", SEASONS)
def test_the_season_is_found(name):
    values, season = SEASONS[name]
    assert find_season([values]) == season
    assert find_season([values, values[:60] * 3]) in (
        season,
        *([12] if name == "too short" else []),
    )
