"""Look at data before training: rows, lengths, labels, double and common rows.

Malformed rows are counted here, not refused. Without --task or --preset all columns are shown, or
those that --columns names. With --preset (or --init, a run or a task folder), texts are also
tokenized as `train` would do it, and a line says how many examples a run would leave out or cut.
With --task forecast: the series, their steps, missing values and season, and what a run would
forecast from what.

examples:
  keras-attn data reviews.csv
  keras-attn data reviews.csv --preset encoder_tiny --columns text=review label=stars
  keras-attn data train.jsonl --valid valid.jsonl --test test.jsonl --task classification
  keras-attn data train.de train.en --task seq2seq --json data.json
  keras-attn data recall:pairs=4,length=64
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from keras_attn.cli.options import add_reading_options, add_set_option, output_file, setting
from keras_attn.cli.terminal import quiet_start
from keras_attn.files import write_text
from keras_attn.task_names import TASK_NAMES
from keras_attn.validation import require

_BAR = 30  # characters of the longest bar
_MOST_VALUES = 12
_LONGEST = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `data`."""
    add = parser.add_argument
    add("data", nargs="+", metavar="DATA", help="training data (see `keras-attn train --help`)")
    add("--valid", nargs="+", metavar="DATA", help="validation data")
    add("--test", nargs="+", metavar="DATA", help="test data")
    add("--task", choices=TASK_NAMES, help="what the columns are read for")
    add("--preset", metavar="NAME", help="tokenize as a run of this preset would")
    add("--init", metavar="TASK", help="tokenize as a run or a task folder does")
    add_reading_options(parser, refuses=False)
    add_set_option(parser, "set a value of run.yaml, such as data.max_source_length=512")
    add("--json", type=output_file, metavar="FILE", help="also write all figures to a file")


def run(options: argparse.Namespace) -> None:
    """Reads, counts and prints."""
    with quiet_start():
        from keras_attn.models import get_preset
        from keras_attn.training.named_sets import SETS_OF_TEXTS, named_set
        from keras_attn.training.run_settings import kind_of_task

    task = options.task
    if task is None and options.preset:
        task = get_preset(options.preset).tasks[0]
    elif task is None and options.init:
        task = kind_of_task(options.init)
    if task == "forecast":
        _show_series(options)
        return
    require(
        not options.set or bool(options.preset or options.init),
        "--set is for what a run would do with the data: name its --preset or --init.",
        set=options.set,
    )
    generated = named_set(SETS_OF_TEXTS, options.data)
    if generated:
        task = task or SETS_OF_TEXTS[options.data[0].partition(":")[0]].task
    task_run = _task_run(options, task)
    parts = _parts(options, task_run, generated)
    found: dict[str, Any] = {"parts": {name: part.summary() for name, part in parts.items()}}
    for name, part in parts.items():
        for note in part.reading.notes:
            print(note)
        _print_part(name, part.reading.name, found["parts"][name])
    found["common"] = [
        [first, second, parts[second].common_with(parts[first])]
        for first, second in itertools.combinations(parts, 2)
    ]
    for first, second, count in found["common"]:
        column = parts[second].columns[0].name
        shared = f"value of column {column}" if column.isdecimal() else column
        print(
            f"{count:,} of {len(parts[second].rows):,} rows of {second} have a {shared} of {first}."
        )
    if task_run is not None and task_run.has_labels:
        if "tags" not in task_run.columns:
            found["unknown"] = _compare_labels(parts)
        _doubt(task_run.columns, found["parts"]["train"])
    if options.preset or options.init:
        found["run"] = _run(options, task)
        _print_run(found["run"], options.preset or options.init)
    if options.json:
        write_text(options.json, json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def _parts(options: argparse.Namespace, task_run: Any, generated: Any) -> dict[str, Any]:
    """What each part of the data holds."""
    from keras_attn.data.overview import overview, overview_of_pairs
    from keras_attn.data.reading.rows import Form
    from keras_attn.training.run_settings import DataSettings

    given = {"train": options.data, "valid": options.valid, "test": options.test}
    roles = tuple(options.columns or ())
    how: tuple = (roles,)
    if task_run is not None:
        roles = task_run.parts_in(options.columns)
        how = (roles, task_run.optional_columns, task_run.mistake)
    parts = {}
    if generated:
        del given["train"]
        pairs = generated(DataSettings(options.data))
        parts = {name: overview_of_pairs(part, roles[:2]) for name, part in pairs.items()}
    form = Form(options.columns, options.encoding, separator=options.label_separator)
    return parts | {name: overview(paths, form, *how) for name, paths in given.items() if paths}


def _task_run(options: argparse.Namespace, task: str | None) -> Any:
    """What depends on the task, also one that the labels of the data show; `None` without any."""
    from keras_attn.training.run_settings import DataSettings
    from keras_attn.training.task_runs import TASK_RUNS

    task_run, separator = None, options.label_separator
    if task is not None:
        how_read = {"columns": options.columns, "encoding": options.encoding}
        data = DataSettings(options.data, label_separator=separator, **how_read)
        task_run = TASK_RUNS[TASK_RUNS[task].recognized(data)]
    require(
        separator is None or (task_run is not None and task_run.has_several),
        "--label-separator is for texts with several labels or numbers: set --task "
        "multi_label_classification or regression.",
        label_separator=separator,
    )
    return task_run


def _compare_labels(parts: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Prints the labels of other parts that train lacks, and returns them."""
    train = parts["train"]
    unknown = {name: part.unknown_to(train) for name, part in parts.items() if part is not train}
    for name, labels in unknown.items():
        if labels:
            print(f"Labels of {name} that train lacks: {_counts(labels)}.")
    return unknown


def _doubt(roles: Sequence[str], part: Mapping[str, Any]) -> None:
    """Prints what is odd about the labels or tags of the summary of a part."""
    from keras_attn.data.overview import ONE_WORD, doubts

    texts, *_, labels = part["columns"].values()
    is_word_a_line = "tags" in roles and texts["words"]["longest"] == 1
    found = [ONE_WORD] if is_word_a_line else []
    if "label" in roles:
        example = f"that of row {part['contradicted_row']}"
        found += doubts(labels.get("values", {}), part["contradicted"], example)
    for doubt in found:
        print(f"{doubt[0].upper()}{doubt[1:]}.")
    if "label" not in roles:
        return
    rows, different = part["rows"], labels["different"]
    if different == rows > 1 or different > 2 * texts["different"]:
        print(
            f"The label has {different:,} different values in {rows:,} rows. To predict "
            "numbers, set --task regression; if they are texts, another column is the label "
            "(--columns)."
        )
    elif different == 1:
        print("All rows have the same label: a classifier needs two at least.")


def _show_series(options: argparse.Namespace) -> None:
    """Prints what series hold, and what a run would forecast."""
    with quiet_start():
        from keras_attn.training.data_report import series_report

    given = {"train": options.data, "valid": options.valid, "test": options.test}
    found = {}
    for name, paths in given.items():
        if paths:
            layers = [setting(assignment) for assignment in options.set]
            lines, found[name] = series_report(
                paths, {"columns": options.columns, "encoding": options.encoding}, *layers
            )
            print(f"{name}: {', '.join(paths)}", *lines, sep="\n")
    if options.json:
        write_text(options.json, json.dumps(found, ensure_ascii=False, indent=1) + "\n")


def _run(options: argparse.Namespace, task: str) -> dict[str, Any]:
    with quiet_start():
        from keras_attn.recipes import merged
        from keras_attn.training.data_report import tokens_report

    data = {
        "train": options.data,
        "columns": options.columns,
        "encoding": options.encoding,
        "label_separator": options.label_separator,
        "skip_bad_lines": True,
    }
    layer: dict[str, Any] = {"task": task, "data": data}
    layer["init" if options.init else "preset"] = options.init or options.preset
    for assignment in options.set:
        layer = merged(layer, setting(assignment))
    return tokens_report(layer)


def _print_part(name: str, files: str, part: Mapping[str, Any]) -> None:
    print(f"{name}: {files}")
    malformed = f", {part['malformed']:,} malformed" if part["malformed"] else ""
    double = f", {part['double']:,} double" if part["double"] else ""
    print(f"  {part['rows']:,} rows{malformed}{double}")
    for mistake in part["mistakes"]:
        print(f"    malformed: {mistake}")
    if part["malformed"]:
        print(f"    `train` stops at these{_of_skipping(part)}.")
    for column, found in part["columns"].items():
        empty = f", {found['empty']:,} empty" if found["empty"] else ""
        example = _shown(found["example"])
        if found["with_nul"]:
            empty += f", {found['with_nul']:,} with a NUL character, which `train` refuses"
        print(f"  {column}: {found['different']:,} different{empty}, such as {example}")
        few = found.get("values")
        if few and len(few) < part["rows"]:
            print(f"    {_counts(few)}")
        else:
            _print_lengths("characters", found["characters"])
            _print_lengths("words", found["words"], histogram=True)
    print()


def _of_skipping(part: Mapping[str, Any]) -> str:
    """What --skip-bad-lines does with malformed rows."""
    from keras_attn.training.run_settings import DataSettings

    most = DataSettings.max_dropped
    if "--encoding" in part["mistakes"][0]:
        return ""
    if part["malformed"] <= most * (part["rows"] + part["malformed"]):
        return "; --skip-bad-lines leaves them out"
    return f"; they are more than the {most:.0%} that --skip-bad-lines leaves out"


def _counts(values: Mapping[str, int]) -> str:
    shown = [f"{_shown(value)} {count:,}" for value, count in values.items()]
    return ", ".join(shown[:_MOST_VALUES]) + (" …" if len(shown) > _MOST_VALUES else "")


def _print_lengths(unit: str, found: Mapping[str, Any], histogram: bool = False) -> None:
    if not found:
        return
    if found["shortest"] == found["longest"]:
        print(f"    {unit}: {found['longest']:,}")
        return
    print(
        f"    {unit}: {found['shortest']:,} to {found['longest']:,}, half up to "
        f"{found['median']:,}, 95% up to {found['95%']:,}"
    )
    if histogram:
        most = max(count for *_, count in found["histogram"])
        for low, _, count in found["histogram"]:
            bar = "▇" * round(_BAR * count / most)
            print(f"      from {low:>6,} {bar} {count:,}")


def _print_run(found: Mapping[str, Any], name: str) -> None:
    print(f"as {name} reads it:")
    for side, lengths in found["tokens"].items():
        print(f"  {side}")
        _print_lengths("tokens", lengths, histogram=True)
    for doubt in found["doubts"]:
        print(f"  Warning: {doubt}.")
    if "error" in found:
        print(f"  {found['error']}")
        return
    limits = ", ".join(f"{limit:,} tokens of a {side}" for side, limit in found["limits"].items())
    print(f"  It would read at most {limits}.")
    for key, what in (
        ("left_out", "are longer and would be left out"),
        ("truncated", "are longer and would be cut"),
        ("without_tokens", "have no token and would be left out"),
    ):
        if found[key]:
            print(f"  {found[key]:,} examples {what}.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")
