"""Files of an exported folder, `NAME/<version>/`, and of its `assets.extra/`."""

import json
from pathlib import Path
from typing import Any

from keras_attn import documents
from keras_attn.reading import read_resource
from keras_attn.validation import require

GOLDEN = Path("assets.extra", "golden.json")
README = Path("assets.extra", "README.md")
WARMUP = Path("assets.extra", "tf_serving_warmup_requests")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file.

    Raises:
        UserError: The file is missing or damaged.
    """
    require(path.exists(), f"The export is incomplete: {path} is missing.")
    return documents.read_json(path)


def template(name: str) -> str:
    """Returns a text of the folder `templates`, in which values are still missing."""
    return read_resource("export", "templates", name)


def write_json(path: Path, content: Any) -> None:
    """Writes `content` as indented JSON, in ASCII, creating the folder above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
