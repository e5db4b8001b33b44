"""Files of an exported folder, `NAME/<version>/`, and of its `assets.extra/`."""

import json
from pathlib import Path
from typing import Any

from keras_attn import documents
from keras_attn.validation import require

FORMAT_VERSION = 1
GOLDEN = Path("assets.extra", "golden.json")
MANIFEST = Path("assets.extra", "keras_attn.json")
README = Path("assets.extra", "README.md")
WARMUP = Path("assets.extra", "tf_serving_warmup_requests")


def read_manifest(version_folder: Path) -> dict[str, Any]:
    """Returns the description that `export_saved_model` wrote into a version folder.

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
    require(path.exists(), f"The export is incomplete: {path} is missing.")
    return documents.read_json(path)


def write_json(path: Path, content: Any) -> None:
    """Writes `content` as indented JSON, in ASCII, creating the folder above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
