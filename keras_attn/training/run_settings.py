"""Settings of a run, from a preset, a file and the command line, as run.yaml holds them."""

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from keras_attn import documents
from keras_attn.data.examples.base import LONG_TEXTS
from keras_attn.data.series.reading import TIME_STEPS
from keras_attn.data.stored.cache import Cache
from keras_attn.files import write_text
from keras_attn.models import get_preset
from keras_attn.recipes import completed, layered, recipe_of
from keras_attn.renamed import renamed_keys
from keras_attn.task_names import current_task_name
from keras_attn.tasks.decoding import RENAMED_DECODING
from keras_attn.training.distillation_settings import DistillationSettings
from keras_attn.training.settings import RENAMED_SETTINGS, TrainingSettings
from keras_attn.training.typed_fields import as_texts, check_numbers, check_types
from keras_attn.validation import UserError, require, require_one_of

RUN_FILE = "run.yaml"
SERIES_SETTINGS: Mapping[str, Any] = {
    "horizon": None,
    "context": None,
    "season": None,
    "time_steps": "equal",
}
"""Settings `data` of series, with their defaults."""

# Sections that are one name.
_NAMES = ("task", "preset", "init")


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """Where a run's texts come from.

    Attributes:
        train: `["cmudict"]`; tables: files (TSV, CSV, JSON lines, Parquet, CoNLL columns), patterns
            such as `data/*.csv` or folders; or a source and a target file whose lines correspond.
        columns: Columns of tables by the parts of an example, such as
            `{text: review, label: stars}`: names, or numbers from 1; by default those of usual
            names.
        encoding: Encoding of the files, by default UTF-8.
        label_separator: What separates the labels or numbers of a text in a field of a table or in
            a line, such as `,` or `|`; lists need none.
        untagged: Tag of words that are neither learned nor judged, such as `_`.
        unlabeled: Whether the training data are texts without targets, a column of a table or one
            text a line, to which the teachers (`distillation`) give the answers. Validation and
            test data have targets as usual; the answers are also the targets of the texts that are
            held out.
        valid: Files of the same form; held out of the training texts where `None`.
        test: Files of the same form, measured at the end; an empty list to measure nothing, though
            the data set has a test part of its own.
        hold_out: Number of sources held out for validation where `valid` is `None`; by default
            one in twenty, at most 2,000, but of few one in five up to 50. Of series the last steps
            of each, and as many before the test; by default a tenth, and at least the horizon.
        stratify: Whether each label is as frequent in the texts that are held out as in the rest.
        decode_limit: Most validation sources that are decoded at each validation, where a task
            generates; all if `None`. The choice between the best and the averaged weights, at the
            end, uses all.
        stress: Whether the phonemes of cmudict carry stress marks.
        skip_bad_lines: Whether malformed lines are left out and counted, instead of being errors.
        whole_words: Whether all pieces of a word are hidden together when a masked language model
            is trained and validated.
        noise_density: Fraction of the tokens that span corruption removes, above 0 and below 1.
        mean_noise_span_length: Mean number of tokens in a span that it removes, at least 1.
        max_source_length: Most tokens of a source, the end token included; for longer ones see
            `long_texts`. By default what the training texts need, at most 256. Where there are no
            targets, longer texts are cut into pieces; in span corruption, of so many tokens when
            they are corrupted, by default 256.
        max_target_length: The same for targets.
        long_texts: What is done with longer texts: `cut` reads their beginning, in the trained task
            too; `drop` leaves them out of the training; `error`. By default `cut` for labels, tags
            and vectors, and `drop` for pairs.
        max_dropped: Greatest part of the rows that may be left out because they are malformed or
            too long.
        horizon: Series: number of steps to forecast; by default a season, or 12 steps without one,
            and at most a tenth of the series.
        context: Series: number of steps that are read; by default two seasons, and at least two
            horizons and 32 steps.
        season: Series: number of steps of a season, 1 for none; found in the data by default.
        time_steps: Series: "equal" if times are equal steps apart, "rows" if each row is a step.
        list_size: Number of passages in a list from which a ranking is learned, at least 2; 8 by
            default.
        cache: Folder in which the texts and their tokens are kept in files, for all runs that have
            the same ones; by default the folder `cache` of the run.
        vocabulary_bytes: Most bytes of texts that a vocabulary is trained on; of more texts a
            random sample is taken, the same in all runs.
    """

    train: list[str]
    columns: dict[str, str | int] | None = None
    encoding: str | None = None
    label_separator: str | None = None
    untagged: str | None = None
    unlabeled: bool = False
    valid: list[str] | None = None
    test: list[str] | None = None
    hold_out: int | None = None
    stratify: bool = True
    decode_limit: int | None = 1000
    stress: bool = False
    skip_bad_lines: bool = False
    whole_words: bool = False
    noise_density: float = 0.15
    mean_noise_span_length: float = 3.0
    max_source_length: int | None = None
    max_target_length: int | None = None
    long_texts: str | None = None
    max_dropped: float = 0.05
    horizon: int | None = None
    context: int | None = None
    season: int | None = None
    time_steps: str = "equal"
    list_size: int | None = None
    cache: str | None = None
    vocabulary_bytes: int = 64_000_000

    @property
    def kept_in(self) -> Cache | None:
        """The cache that the texts are kept in; `None` for memory."""
        return Cache(self.cache) if self.cache else None

    def __post_init__(self) -> None:
        check_types(self)
        limits = ("hold_out", "decode_limit", "max_source_length", "max_target_length")
        limits += ("vocabulary_bytes", "horizon", "context", "season", "list_size")
        check_numbers(self, positive=limits)
        require_one_of("time_steps", self.time_steps, TIME_STEPS)
        require(
            self.label_separator != "", "`label_separator` must not be empty.", label_separator=""
        )
        if self.long_texts is not None:
            require_one_of("long_texts", self.long_texts, LONG_TEXTS)
        require(
            0 <= self.max_dropped <= 1,
            "`max_dropped` must be a part of the rows, from 0 to 1.",
            max_dropped=self.max_dropped,
        )


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Settings of a run, section by section as in run.yaml.

    Attributes:
        data: Where the texts come from.
        training: The numbers of the training.
        task: Name of the task, one of `keras_attn.task_names.TASK_NAMES`; by default that of the
            preset, or of the task to start from.
        preset: Name of the preset, or `None` with `init`.
        init: Task folder to start from instead of a preset's untrained model. Where both are set,
            the recipe is the preset's.
        model: Arguments of the model that differ from the preset's.
        tokenizers: `{"shared": …, "source": {"kind": …}, "target": {"kind": …}}`.
        decoding: Fields of `DecodingSettings`.
        attention: Mechanism that the model's attention to its own sequence is built from:
            `{"name": …}` with arguments of its layer, or its name alone; the preset's if `None`.
        distillation: The teachers that the model learns from, and how; none if `None`.
        metrics: Names of text metrics; the first chooses the best model unless
            `training.metric` names another value. Without any the loss chooses.
        by_amount: Settings for more or less training data, by conditions such as `rows < 10000` or
            `words >= 1000000`; what is set elsewhere has priority. run.yaml has the resulting
            settings in their place.
    """

    data: DataSettings
    training: TrainingSettings
    task: str = "seq2seq"
    preset: str | None = None
    init: str | None = None
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    tokenizers: dict[str, Any] = dataclasses.field(default_factory=dict)
    decoding: dict[str, Any] = dataclasses.field(default_factory=dict)
    attention: dict[str, Any] | None = None
    distillation: DistillationSettings | None = None
    metrics: list[str] = dataclasses.field(default_factory=list)
    by_amount: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def resolve(cls, *layers: Mapping[str, Any]) -> "RunSettings":
        """Merges nested settings over each other and over the preset that they name.

        Args:
            *layers: Nested dicts; later ones override earlier ones.

        Returns:
            The settings.

        Raises:
            UserError: A section or a name is unknown, a value of the wrong type, neither
                preset nor `init` is named, or `init` is a run of another preset than the one that
                is named too.
        """
        checked = [_checked_layer(layer) for layer in layers]
        given = layered(checked)
        preset, init = given.get("preset"), given.get("init")
        require(
            bool(preset) or bool(init),
            "A run needs a preset (`keras-attn presets` lists them) or a task to start from.",
            preset=preset,
            init=init,
        )
        if preset and init:
            recipe = _recipe_for_init(preset, init, given.get("task"))
        elif preset:
            recipe = get_preset(preset).recipe(given.get("task"))
        else:
            recipe = _recipe_of_init(init, given.get("task"))
        given = layered([recipe, *checked])
        if init:
            given["preset"] = None
        training = dict(given.get("training") or {})
        if given.get("metrics"):
            training.setdefault("metric", given["metrics"][0])
        if training.get("steps") is not None:
            # A number of steps takes the place of the default number of epochs.
            training.setdefault("epochs", None)
        return cls(
            **given
            | {
                "data": _data_settings(given.get("data") or {}),
                "training": TrainingSettings.from_dict(training),
                "distillation": _distillation_settings(given.get("distillation")),
            }
        )

    @classmethod
    def read(cls, path: str | Path, *layers: Mapping[str, Any]) -> "RunSettings":
        """Reads a run's own run.yaml, merges further settings over it and resolves them."""
        return cls.resolve(read_run_file(path), *layers)

    def write(self, path: str | Path) -> None:
        """Writes run.yaml, under a temporary name first."""
        write_text(path, yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True))

    def to_dict(self) -> dict[str, Any]:
        """All settings as nested plain values."""
        return dataclasses.asdict(self)

    def replace(self, **sections: Any) -> "RunSettings":
        """Copies the settings with some sections replaced."""
        return dataclasses.replace(self, **sections)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Reads a file of nested settings.

    Args:
        path: A YAML file.

    Returns:
        The settings.

    Raises:
        UserError: The file is missing, cannot be read, has a key twice or holds no mapping.
    """
    path = Path(path)
    require(path.exists(), f"There is no such file of settings: {path}.")
    content = documents.read_yaml(path)
    require(isinstance(content, dict), f"{path} must hold sections of settings.", found=content)
    return content


def read_run_file(path: str | Path) -> dict[str, Any]:
    """Reads a run's own run.yaml, also one of the previous version, under the current names."""
    settings = {"by_amount": {}} | _with_new_names(read_yaml(path), warns=False)
    data = settings.get("data")
    if isinstance(data, Mapping) and "max_dropped" not in data:
        # The previous version read the same files in another way, which a resumed run keeps.
        labels = settings.get("task") in ("classification", "token_classification")
        before = {"stratify": False, "max_dropped": 1.0} | (
            {"long_texts": "drop"} if labels else {}
        )
        settings = settings | {"data": before | dict(data)}
    return settings


def flat(sections: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by names such as `training.seed`."""
    found = {}
    for name, value in sections.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _with_new_names(layer: Mapping[str, Any], warns: bool = True) -> dict[str, Any]:
    """Returns a layer of settings with new names in place of old ones."""
    names = {"training": RENAMED_SETTINGS, "decoding": RENAMED_DECODING}
    if "task" in layer:
        layer = layer | {"task": current_task_name(layer["task"], warns)}
    return {
        section: renamed_keys(values, names[section], f"{section}." if warns else None)
        if section in names and isinstance(values, Mapping)
        else values
        for section, values in layer.items()
    }


def _checked_layer(layer: Mapping[str, Any]) -> dict[str, Any]:
    """One layer of settings, complete and with known sections."""
    sections = _checked_sections(_with_new_names(completed(layer)))
    training = sections.get("training", {})
    # An end that is set takes the place of the recipe's; epochs that are set end with a validation.
    if training.get("epochs") is not None:
        training = {"validate_every": 0} | dict(training)
    if any(training.get(name) is not None for name in ("epochs", "steps")):
        sections["training"] = {"epochs": None, "steps": None, "min_steps": 0} | dict(training)
    return sections


def _checked_sections(layer: Mapping[str, Any]) -> dict[str, Any]:
    """One layer of settings with known sections of the right kind; empty sections left out."""
    fields = {field.name: field for field in dataclasses.fields(RunSettings)}
    sections = {}
    for name, value in layer.items():
        require_one_of("section", name, fields)
        if name in _NAMES:
            require(
                value is None or isinstance(value, str),
                f"The section `{name}` must be text.",
                **{name: value},
            )
        elif value is None:
            continue
        elif name == "metrics":
            value = as_texts("metrics", value)
        elif name == "attention" and isinstance(value, str):
            value = {"name": value}
        else:
            require(
                isinstance(value, Mapping),
                f"The section `{name}` must hold named settings.",
                **{name: value},
            )
        sections[name] = value
    return sections


def _data_settings(values: Mapping[str, Any]) -> DataSettings:
    _check_names(DataSettings, "data setting", values)
    require(bool(values.get("train")), "A run needs training data (`--data`).", data=values)
    return DataSettings(**values)


def _distillation_settings(values: Mapping[str, Any] | None) -> DistillationSettings | None:
    if not values:
        return None
    _check_names(DistillationSettings, "distillation setting", values)
    return DistillationSettings(**values)


def _check_names(section: type, what: str, values: Mapping[str, Any]) -> None:
    for name in values:
        require_one_of(what, name, [field.name for field in dataclasses.fields(section)])


def _recipe_of_init(init: str, task: str | None) -> dict[str, Any]:
    """The lowest settings of a run that starts from a task.

    They are those that fit trained weights, its task, and the metrics of the run that it comes
    from, if that had the same task.
    """
    kind = kind_of_task(init)
    known = task or kind
    recipe = recipe_of("fine_tuning", "", known) if known else {"task": RunSettings.task}
    path = Path(init) / RUN_FILE
    metrics = read_run_file(path).get("metrics") if path.is_file() else None
    if metrics and kind in (None, recipe["task"]):
        recipe["metrics"] = as_texts("metrics", metrics)
    return recipe


def _recipe_for_init(preset: str, init: str, task: str | None) -> dict[str, Any]:
    """The lowest settings of a run that starts from a run of a preset, by the preset's recipe.

    Model and tokenizers are those of the run.
    """
    found = get_preset(preset)
    task = task or found.tasks[0]
    require_one_of("task", task, found.tasks)
    path = Path(init) / RUN_FILE
    before = read_run_file(path).get("preset") if path.is_file() else None
    require(
        before == preset,
        "A preset and a task to start from belong together where the task is a run of that preset.",
        preset=preset,
        init=init,
        preset_of_init=before,
    )
    recipe = _without_model(found.recipe(task))
    rules = recipe.get("by_amount", {})
    return recipe | {"by_amount": {one: _without_model(rules[one]) for one in rules}}


def _without_model(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings but those of the model and of its tokenizers."""
    return {name: settings[name] for name in settings if name not in ("model", "tokenizers")}


def kind_of_task(folder: str | Path) -> str | None:
    """The task that a run or a task folder names; `None` if it names none."""
    folder = Path(folder)
    for path in (folder / "task.json", folder / "task" / "task.json"):
        if path.is_file():
            with contextlib.suppress(UserError):  # loading it reports this
                return current_task_name(documents.read_json_object(path).get("task"))
    return None
