"""Base class of tasks, which saves to and loads from a folder."""

import abc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import keras

from keras_attn.documents import read_json_object
from keras_attn.files import replaced_folder
from keras_attn.layers.composite_layer import with_default_policy
from keras_attn.reading import path_inside
from keras_attn.task_folders import TASK_FILE, find_task
from keras_attn.task_names import current_task_name
from keras_attn.tasks.exported_weights import PLACES_FILE, ExportedWeights
from keras_attn.tasks.operations import perform
from keras_attn.tasks.weights import WeightsFile, save_weights
from keras_attn.tokenizers import Tokenizer, load_tokenizer
from keras_attn.validation import UserError, require, require_one_of

WEIGHTS_FILE = "model.weights.h5"
ASSETS_FOLDER = "assets"
FORMAT_VERSION = 1
# Errors that Keras and the constructed classes raise for damaged values.
_DAMAGES = (
    *(ValueError, TypeError, KeyError, AttributeError, ImportError),
    *(OverflowError, MemoryError, RecursionError),
)


class Task(abc.ABC):
    """A model with its tokenizers and settings: the unit that is trained, saved and exported.

    Args:
        backbone: The model, which takes token ids or other inputs.
        tokenizers: The tokenizers by role; empty if the task has no text inputs or outputs.

    Examples:
        >>> words = {"good": "positive", "fine": "positive", "bad": "negative", "dull": "negative"}
        >>> pairs = [(f"a {word} film", label) for word, label in words.items()] * 40
        >>> task = Task.from_preset("encoder_tiny", pairs, model={"num_layers": 1})
        >>> result = task.fit(pairs, pairs[:4], out="runs/demo", epochs=5, batch_tokens=128)
             train: 160 texts from ...
        >>> task.predict(["a fine film", "a dull film"])
        ['positive', 'negative']
        >>> Task.load("runs/demo/task")  # `task.save` writes such a folder too
        ClassificationTask(SequenceClassifier, 2 labels)
    """

    kind: ClassVar[str]
    """Name of the task in task folders, exports and `--task`."""

    classes: ClassVar[dict[str, type["Task"]]] = {}

    loss_values: ClassVar[tuple[str, ...]] = ("loss", "nll", "accuracy", "perplexity")
    """Values that follow from the loss in training and validation."""

    preset: str | None = None
    """Name of the preset, if the weights are still those of its random initialization."""

    _roles: ClassVar[tuple[str, ...]] = ("text",)
    """Roles of the tokenizers, in the order of the constructor's arguments."""

    _saved: ClassVar[tuple[str, ...]] = ()
    """The constructor's other arguments, which are attributes and are saved in `task.json`."""

    _saved_later: ClassVar[dict[str, Any]] = {}
    """Values of those that are missing in older folders."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "kind" in vars(cls):  # not the base class of several tasks
            Task.classes[cls.kind] = cls

    def __init__(self, backbone: keras.Model, tokenizers: Mapping[str, Tokenizer]):
        self.backbone = backbone
        self.tokenizers = dict(tokenizers)
        sizes = _vocabulary_sizes(backbone)
        for role, tokenizer in self.tokenizers.items():
            size = sizes.get(role, sizes.get("source"))
            require(
                size is None or tokenizer.vocabulary_size <= size,
                "The vocabulary of the model must hold every token of the tokenizer.",
                tokenizer=role,
                tokens=tokenizer.vocabulary_size,
                vocabulary_size=size,
            )

    def count_truncated(self, texts: Sequence[Any]) -> int:
        """Counts the texts that are too long for the task, which reads their beginning alone.

        Args:
            texts: What `predict` takes.
        """
        del texts  # all are read as they are
        return 0

    def save(self, folder: str | Path) -> None:
        """Saves the task to a folder, replacing a task saved there before.

        The folder contains `task.json`, `model.weights.h5` and `assets/`, with one folder per
        tokenizer. It is written under a temporary name and renamed.

        Args:
            folder: The folder; it must be new, empty or contain a task and nothing else.

        Raises:
            UserError: The folder contains something else, or cannot be written.
        """
        folder = Path(folder).resolve()
        _check_free(folder)
        try:
            with replaced_folder(folder) as temporary:
                self._write(temporary)
        except (OSError, RuntimeError) as error:  # HDF5 has its own for a full disk
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
            raise UserError(f"The task cannot be saved in {folder}: {reason}.") from error

    def _write(self, folder: Path) -> None:
        self.write_description(folder)
        save_weights(self.backbone, folder / WEIGHTS_FILE)

    def write_description(self, folder: Path) -> None:
        """Writes a task folder without its weights.

        Args:
            folder: The folder, which exists.
        """
        for role, tokenizer in self.tokenizers.items():
            tokenizer.save(folder / ASSETS_FOLDER / role)
        content = {
            "format_version": FORMAT_VERSION,
            "task": self.kind,
            "backbone": _describe(self.backbone),
            "tokenizers": sorted(self.tokenizers),
            **({"preset": self.preset} if self.preset else {}),
            **self._settings(),
        }
        (folder / TASK_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, dtype: str = "float32") -> "Task":
        """Loads a task folder.

        Args:
            folder: A folder written by `save`, or one that contains a task: a run, an export, or a
                model of `saved_models/`. The task of an export has the exported weights.
            dtype: Dtype policy of the model, independent of the one it was trained with.

        Returns:
            The task, of the class that was saved.

        Raises:
            UserError: The folder is missing or damaged, contains another kind of task, or was
                written by a later version.
        """
        folder = Path(folder)
        require(folder.is_dir(), "The task folder must exist.", folder=str(folder))
        folder = find_task(folder) or folder
        for name in (TASK_FILE, WEIGHTS_FILE, PLACES_FILE, ASSETS_FOLDER):
            path_inside(folder, name, f"{folder}: a task folder")
        path = folder / TASK_FILE
        require(path.exists(), f"{folder} is not a task folder: it has no {TASK_FILE}.")
        content = read_json_object(path)
        require(
            content.get("format_version") == FORMAT_VERSION,
            f"{path}: `format_version` must be {FORMAT_VERSION}.",
            format_version=content.get("format_version"),
        )
        for key, kind in (("task", str), ("tokenizers", list), ("backbone", dict)):
            value, expected = content.get(key), {str: "text", list: "a list", dict: "an object"}
            require(
                isinstance(value, kind),
                f"{path}: `{key}` must be {expected[kind]}.",
                **{key: value},
            )
        task = current_task_name(content["task"])
        require_one_of("task", task, Task.classes)
        found = Task.classes[task]
        require(
            issubclass(found, cls),
            f"The folder must contain a {cls.__name__}.",
            folder=str(folder),
            found=found.__name__,
        )
        try:
            roles, description = content["tokenizers"], content["backbone"]
            assets, source = folder / ASSETS_FOLDER, f"{path}: `tokenizers`"
            tokenizers = {role: load_tokenizer(path_inside(assets, role, source)) for role in roles}
            exported = (folder / PLACES_FILE).is_file()
            weights = ExportedWeights(folder) if exported else WeightsFile(folder / WEIGHTS_FILE)
            backbone = _make_backbone(description, dtype, weights)
            weights.load(backbone)
            loaded = found._from_parts(backbone, tokenizers, content)
            preset = content.get("preset")
            loaded.preset = preset if isinstance(preset, str) else None
            return loaded
        except UserError:
            raise
        except _DAMAGES as error:
            # Keras writes the whole configuration before the reason, and advice after it.
            reason = str(error).rpartition("Exception encountered:")[2]
            reason = " ".join(reason.split()).partition(" If you trust")[0][:200]
            raise UserError(f"{path} is damaged: {type(error).__name__}: {reason}") from error

    @classmethod
    def from_preset(
        cls,
        name: str,
        data: Any,
        task: str | None = None,
        columns: str | Sequence[str] | Mapping[str, str | int] | None = None,
        teacher: Any = None,
        **settings: Any,
    ) -> Self:
        """Builds a task with a randomly initialized model of a preset's sizes.

        For trained weights use `keras_attn.load` or `from_huggingface`.

        Args:
            name: Name of the preset (`keras-attn presets` lists them).
            data: Training data, in any form that `fit` accepts; the tokenizers are trained on
                them, and the labels are collected from them.
            task: Name of the task, such as "classification", for presets of several tasks.
            columns: Columns of `data`, if that is a table.
            teacher: Task, or folder of a run or task, whose tokenizers and labels the new task has,
                so that it can be its student (see `fit`).
            **settings: Settings of a run, see `fit`, such as `model={"dropout": 0.2}` and
                `tokenizers={"text": {"kind": "word_piece", "vocabulary_size": 8000}}`; for series
                also `horizon`, `context` and `season`.

        Returns:
            The task, an instance of the preset's task class.

        Raises:
            UserError: The preset is unknown or not one for this task, or a setting is invalid.
        """
        options = {"teacher": teacher, **settings}
        return perform("from_preset", cls, name, data, task, columns, **options)

    @classmethod
    def from_huggingface(cls, folder: str | Path) -> Self:
        """Converts a checkpoint folder of Hugging Face, with its trained weights.

        Args:
            folder: The folder, see `keras_attn.convert.from_huggingface`.

        Returns:
            The task, an instance of the checkpoint's task class.

        Raises:
            UserError: The folder cannot be converted, or contains another kind of task.
        """
        task = perform("from_huggingface", folder)
        require(
            isinstance(task, cls),
            f"The checkpoint must contain a {cls.__name__}.",
            folder=str(folder),
            found=type(task).__name__,
        )
        return task

    def fit(
        self,
        train: Any,
        validation: Any = None,
        test: Any = None,
        out: str | Path | None = None,
        columns: str | Sequence[str] | Mapping[str, str | int] | None = None,
        resume: bool = False,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        teacher: Any = None,
        **settings: Any,
    ) -> Any:
        """Trains the task, as `keras-attn train` does, and keeps the best weights.

        Args:
            train: Training data: a path or the name of a data set, a list of `pathlib.Path`, a list
                of texts or of pairs, a tuple of two lists (sources and targets), a pandas
                DataFrame, a `datasets.Dataset`, a list of dicts, a mapping of columns, or a
                `tf.data.Dataset`.
            validation: Validation data in the same form; by default a part of `train` is held out.
            test: Data to evaluate the trained task on, in the same form.
            out: The run folder, which receives checkpoints, metrics.csv and the trained task; by
                default a temporary folder. It must be new or empty, unless the run is resumed.
            columns: Columns of tables and of files, such as `("review", "stars")` or
                `{"text": "review", "label": "stars"}`; by default those of usual names.
            resume: Whether to resume the run in `out`, if there is one.
            callbacks: Keras callbacks, called as by `keras_attn.training.Trainer`.
            teacher: Task, folder of a run or task, or list of them, that the task learns from
                (see the settings `distillation`); it must have the same tokenizers.
            **settings: Settings of the run: those of the section `training` by name, such as
                `epochs`, `learning_rate` and `batch_tokens`, and other sections as dicts, such as
                `metrics=["bleu"]` and `decoding={"beams": 4}`.

        Returns:
            A `keras_attn.training.fitting.FitResult`: the run folder, the history and the metrics
            of the test data.

        Raises:
            UserError: The data or a setting is invalid.
            TrainingInterrupted: A signal stopped the training after a checkpoint.
        """
        options = {"resume": resume, "callbacks": callbacks, "teacher": teacher, **settings}
        return perform("fit", self, train, validation, test, out, columns, **options)

    def evaluate(
        self,
        data: Any,
        metrics: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | Mapping[str, str | int] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Evaluates the task, as `keras-attn evaluate` does.

        Args:
            data: Data in any form that `fit` accepts.
            metrics: Names of metrics; by default the usual ones for the task.
            columns: Columns of `data`, if it is a table.
            **options: `beams`, `perplexity` and `errors`, see `keras-attn evaluate`.

        Returns:
            The metrics by name, and "items", the number of examples.

        Raises:
            UserError: A metric is unknown, or the data have another form.
        """
        return perform("evaluate", self, data, metrics, columns, **options)

    def export(self, folder: str | Path, **options: Any) -> Path:
        """Exports the task as a SavedModel for TensorFlow Serving.

        Args:
            folder: The model's folder, in which a new version folder is created.
            **options: See `keras_attn.export.export_saved_model`.

        Returns:
            The version folder.

        Raises:
            UserError: The folder cannot be written, or an option is invalid.
        """
        return perform("export", self, folder, **options)

    def save_huggingface(self, folder: str | Path) -> None:
        """Saves the task as a folder of Hugging Face, which `from_pretrained` reads.

        Args:
            folder: The folder; it must be new, empty or contain a checkpoint and nothing else.

        Raises:
            UserError: transformers has no class for the task, see
                `keras_attn.convert.save_huggingface`.
        """
        perform("save_huggingface", self, folder)

    def resources(self) -> list:
        """Returns the tokenizers and variables that serving functions use."""
        return [*self.tokenizers.values(), *self.backbone.variables]

    def summary(self) -> None:
        """Prints the task's tokenizers and its model's summary."""
        for role, tokenizer in self.tokenizers.items():
            kind = type(tokenizer).__name__
            print(f"{role}: {kind} of {tokenizer.vocabulary_size:,} tokens")  # noqa: T201
        if self.preset:
            print(f"model: randomly initialized, of the sizes of {self.preset}")  # noqa: T201
        self.backbone.summary()

    def _settings(self) -> dict[str, Any]:
        """Returns the task's own settings as JSON values."""
        return {name: getattr(self, name) for name in self._saved}

    @classmethod
    def _from_parts(
        cls, backbone: keras.Model, tokenizers: dict[str, Tokenizer], settings: dict[str, Any]
    ) -> Self:
        """Builds the task from its loaded parts; `settings` is the content of `task.json`."""
        settings = cls._saved_later | settings
        saved = {name: settings[name] for name in cls._saved}
        return cls(backbone, *(tokenizers[role] for role in cls._roles), **saved)


def _check_free(folder: Path) -> None:
    """Raises unless the folder is new, empty or contains a task and nothing else."""
    if not folder.exists():
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    others = sorted(names - {TASK_FILE, WEIGHTS_FILE, ASSETS_FOLDER})
    if others or (names and TASK_FILE not in names) or not folder.is_dir():
        raise UserError(
            "The folder to save a task in must be new, empty or contain only a task. "
            f"Received: {folder}, which contains {', '.join((others or sorted(names))[:3])}."
        )


def _vocabulary_sizes(model: keras.Model) -> dict[str, int]:
    """Sizes of a model's vocabularies by side; none if it has no tokens."""
    config = model.get_config()
    if "vocabulary_size" not in config:
        encoder = getattr(model, "encoder", None)  # a head on an encoder
        return _vocabulary_sizes(encoder) if isinstance(encoder, keras.Model) else {}
    source = config["vocabulary_size"]
    return {"source": source, "target": config.get("target_vocabulary_size") or source}


def _describe(backbone: keras.Model) -> dict:
    # Written by hand because Keras would add the compile configuration, which a task does not need
    # and which may not load elsewhere.
    return {
        "module": type(backbone).__module__,
        "class_name": type(backbone).__name__,
        "registered_name": keras.saving.get_registered_name(type(backbone)),
        "config": keras.saving.serialize_keras_object(backbone.get_config()),
    }


def _make_backbone(
    description: dict, dtype: str, weights: WeightsFile | ExportedWeights
) -> keras.Model:
    from keras_attn.models.size_check import check_sizes

    config = description["config"]
    config = config | {"dtype": with_default_policy(config.get("dtype"), dtype)}

    def make() -> keras.Model:
        return keras.saving.deserialize_keras_object(description | {"config": config})

    check_sizes(config, make, weights.parameters, weights.arrays)
    return make()
