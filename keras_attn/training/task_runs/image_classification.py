"""Runs of tasks from image to label."""

import itertools
from typing import Any, ClassVar

from keras_attn.data import ImageExamples, load_digits, load_pathfinder_images, read_labelled_images
from keras_attn.layers.embedding.patch import both_sides, checked_size, number_of_patches
from keras_attn.models import get_preset
from keras_attn.tasks import ImageClassificationTask
from keras_attn.training.named_sets import NamedSet
from keras_attn.training.run_settings import RunSettings
from keras_attn.training.run_texts import reported
from keras_attn.training.task_runs.classification import ClassificationRun
from keras_attn.validation import require

DIGITS = "digits"
_IMAGES = 8
_SMALL = 48_000  # bytes, of an image that the page of `serve` shows


class ImageClassificationRun(ClassificationRun):
    """Trains an encoder of patches and a head on PNG images with labels."""

    task_class = ImageClassificationTask
    roles = ()
    columns = ("file", "label")
    named_columns = ()
    long_texts = ()
    lengths: ClassVar = {}
    items = "images"
    known_data: ClassVar = {
        DIGITS: NamedSet(load_digits),
        "pathfinder": NamedSet(load_pathfinder_images),
    }
    other_starts = ()
    alike = ("image_size", "channels", "resize_to", "interpolation")
    no_answer = None

    def check(self, settings):
        require(not settings.tokenizers, "Images need no `tokenizers`.", **settings.tokenizers)
        super().check(settings)
        for name in ("max_source_length", "max_target_length"):
            value = getattr(settings.data, name)
            require(value is None, f"Images have no `data.{name}`.", **{name: value})

    def recognized(self, data):
        return self.name

    def read_files(self, paths, data):
        require(
            len(paths) == 1,
            "Image data must be `digits`, one folder, or one table of files and labels.",
            data=list(paths),
        )
        how = (data.skip_bad_lines, data.columns, data.encoding, data.kept_in)
        return reported(read_labelled_images(paths[0], *how), "files or lines")

    def examples(self, settings, texts, tokenizers, task, held_out=False):
        layout = _layout_of(task) if task else _layout(settings)
        return ImageExamples.from_pairs(texts, self.labels(texts, task), **layout)

    def lengths_of(self, task):
        return {}

    def encoder(self, settings, tokenizers):
        return self.model(settings, _layout(settings)["positions"])

    def made(self, model, tokenizers, head, settings, source_task):
        resizing = {} if source_task is None else source_task.resizing
        return self.task_class(model, *head, **resizing)

    def held_out_inputs(self, task, texts):
        """The first small images, of all labels in turn."""
        of_label: dict[str, list[bytes]] = {}
        for image, label in zip(texts.sources, self.all_labels(texts), strict=True):
            if len(image) <= _SMALL:
                of_label.setdefault(label, []).append(bytes(image))
        turns = itertools.zip_longest(*of_label.values())
        images = (image for turn in turns for image in turn if image is not None)
        return list(itertools.islice(dict.fromkeys(images), _IMAGES))

    def shown(self, source):
        return source.name


def _layout(settings: RunSettings) -> dict[str, Any]:
    """Size, channels and positions of the images of a model before it is made."""
    sizes = {**get_preset(settings.preset).config, **settings.model}
    image_size = checked_size("image_size", sizes["image_size"])
    patches = number_of_patches(image_size, checked_size("patch_size", sizes["patch_size"]))
    return {
        "image_size": both_sides(image_size),
        "channels": sizes["channels"],
        "positions": patches + bool(sizes["class_token"]),
    }


def _layout_of(task: ImageClassificationTask) -> dict[str, Any]:
    """Size, channels and positions of a task's images."""
    return {
        "image_size": task.image_size,
        "channels": task.channels,
        "positions": task.backbone.encoder.length,
        **task.resizing,
    }
