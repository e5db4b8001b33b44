"""PNG files with labels: a folder for each label, or a table of files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from keras_attn.data.files import Pairs, read_pairs
from keras_attn.data.images import ImageFile, read_images
from keras_attn.data.split import taken
from keras_attn.data.stored.cache import Cache
from keras_attn.data.stored.images import stored_images
from keras_attn.validation import UserError

LABELS_FILE = "labels.tsv"
_OF_THE_SYSTEM = {"thumbs.db", "desktop.ini"}  # which Windows puts into folders of images
_HINT = "Set `skip_bad_lines` (--skip-bad-lines) to leave such files out."


def read_labelled_images(
    path: str | Path,
    skip_bad_files: bool = False,
    columns: Mapping[str, str | int] | None = None,
    encoding: str | None = None,
    cache: Cache | None = None,
) -> Pairs[ImageFile]:
    r"""Reads PNG images and their labels.

    Args:
        path: A folder that holds one folder for each label, with PNG files in it; or a table of
            files and labels (see `read_pairs`), the files' names relative to its folder; or a
            folder with lines `file<TAB>label` in a file named `labels.tsv`. Names that begin with
            a dot, `Thumbs.db` and `desktop.ini` are ignored.
        skip_bad_files: Whether files that are not valid PNG files are left out and counted in
            `Pairs.skipped` instead of raising an error.
        columns: Column of `file` and of `label` in a table.
        encoding: Encoding of the table, UTF-8 by default.
        cache: Where decoded images are kept; the files are then read when they are needed. By
            default they are in memory.

    Returns:
        Images, as `ImageFile`, and labels, in the order of their names or of the table.

    Raises:
        UserError: The folder or a file is missing, a file is not a PNG file, an image is damaged,
            or none is left.

    Examples:
        >>> from pathlib import Path
        >>> for label in ("cat", "dog"):
        ...     Path("pets", label).mkdir(parents=True)
        ...     keras.utils.save_img(f"pets/{label}/1.png", np.zeros((8, 8, 3)))
        >>> pets = read_labelled_images("pets")
        >>> pets.sources[0].name, pets.targets
        ('pets/cat/1.png', ['cat', 'dog'])
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"{path}: no such folder or file.")
    table = table_in(path)
    if table is None:
        named, skipped = files_in_folders(path), 0
    else:
        roles = ("file", "label")
        pairs = read_pairs(table, skip_bad_files, columns=columns, encoding=encoding, roles=roles)
        named = [
            (table.parent / name, label)
            for name, label in zip(pairs.sources, pairs.targets, strict=True)
        ]
        skipped = pairs.skipped
    files, targets = [file for file, _ in named], [label for _, label in named]
    images: Sequence[ImageFile]
    try:
        if cache is None:
            found = read_images(files, [] if skip_bad_files else None)
            images = [image for image in found if image is not None]
            kept = np.array([row for row, image in enumerate(found) if image is not None], int)
        else:
            images, kept = stored_images(cache, files, skip_bad_files)
    except UserError as error:
        raise UserError(f"{error} {_HINT}") from None
    if not len(images):
        raise UserError(f"{path}: no image is left because all {len(named):,} files are malformed.")
    return Pairs(images, taken(targets, kept), str(path), skipped + len(files) - len(images))


def table_in(path: Path) -> Path | None:
    """The table of images: the file that a path is, or one in the folder that it is, or `None`."""
    if not path.is_dir():
        return path
    return path / LABELS_FILE if (path / LABELS_FILE).is_file() else None


def files_in_folders(path: Path) -> list[tuple[Path, str]]:
    """The files in the folders of a folder, with the folders' names, their labels."""
    inside = _visible(path)
    loose = [one for one in inside if not one.is_dir() and one.suffix.lower() == ".png"]
    if loose:
        raise UserError(
            f"{loose[0]}: images must be in folders named after their labels, or listed in "
            f"{LABELS_FILE}."
        )
    folders = [one for one in inside if one.is_dir()]
    if not folders:
        raise UserError(
            f"{path}: expected a folder for each label, or {LABELS_FILE}, found neither."
        )
    files = []
    for folder in folders:
        found = _visible(folder)
        if not found:
            raise UserError(f"{folder}: expected the PNG files of this label, found none.")
        inner = [one for one in found if one.is_dir()]
        if inner:
            raise UserError(
                f"{path}: the folders in it are labels, with PNG files in them; {folder} has the "
                f"folder {inner[0].name!r}. Is {folder} the folder of a part of the data?"
            )
        files += [(file, folder.name) for file in found]
    return files


def _visible(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.name.lower() not in _OF_THE_SYSTEM
    )
