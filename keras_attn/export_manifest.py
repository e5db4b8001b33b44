"""Description of an export, written beside its SavedModel."""

from pathlib import Path
from typing import Any

from keras_attn import documents
from keras_attn.validation import require

FORMAT_VERSION = 1
MANIFEST = Path("assets.extra", "keras_attn.json")


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
    manifest = documents.read_json(path)
    require(
        isinstance(manifest, dict) and manifest.get("format_version") == FORMAT_VERSION,
        f"The format version of {str(MANIFEST)!r} must be {FORMAT_VERSION}.",
        format_version=manifest.get("format_version") if isinstance(manifest, dict) else None,
    )
    return manifest
