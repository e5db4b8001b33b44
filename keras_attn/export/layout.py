"""Where things lie in an exported folder, `NAME/<version>/`, and in its `assets.extra/`."""

import json
from pathlib import Path
from typing import Any

from keras_attn.validation import UserError, require

FORMAT_VERSION = 1
GOLDEN = Path("assets.extra", "golden.json")
MANIFEST = Path("assets.extra", "keras_attn.json")
WARMUP = Path("assets.extra", "tf_serving_warmup_requests")
SAVED_MODEL = "saved_model.pb"


def existing_versions(folder: str | Path) -> list[int]:
    """Returns the version numbers under `folder`, in ascending order: names that are integers."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    names = (path.name for path in folder.iterdir() if path.is_dir())
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def resolve_version(folder: str | Path) -> Path:
    """Returns the folder that holds `saved_model.pb`.

    Args:
        folder: A version folder itself, or the folder above, of which the highest version counts,
            as it does for TensorFlow Serving.

    Raises:
        UserError: There is no SavedModel.
    """
    folder = Path(folder)
    require(folder.is_dir(), "A SavedModel is a folder.", folder=str(folder))
    if (folder / SAVED_MODEL).is_file():
        return folder
    versions = existing_versions(folder)
    latest = folder / str(versions[-1]) if versions else folder
    require(
        (latest / SAVED_MODEL).is_file(),
        f"A SavedModel folder holds {SAVED_MODEL!r}, itself or under its highest version.",
        folder=str(latest),
    )
    return latest


def read_manifest(version_folder: Path) -> dict[str, Any]:
    """Returns the description that `export_saved_model` left in a version folder.

    Raises:
        UserError: The SavedModel was not written by this package, or by a newer one.
    """
    path = version_folder / MANIFEST
    require(
        path.is_file(),
        f"The SavedModel was not exported by keras_attn: it has no {str(MANIFEST)!r}.",
        folder=str(version_folder),
    )
    manifest = read_json(path)
    require(
        isinstance(manifest, dict) and manifest.get("format_version") == FORMAT_VERSION,
        f"The format version of {str(MANIFEST)!r} must be {FORMAT_VERSION}.",
        format_version=manifest.get("format_version") if isinstance(manifest, dict) else None,
    )
    return manifest


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} cannot be read as JSON: {reason}.") from error


def write_json(path: Path, content: Any) -> None:
    """Writes `content` as indented JSON, in ASCII, creating the folder above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
