"""Files of an exported folder, `NAME/<version>/`, and of its `assets.extra/`."""

import json
from pathlib import Path
from typing import Any

from keras_attn.reading import read_resource

GOLDEN = Path("assets.extra", "golden.json")
README = Path("assets.extra", "README.md")
WARMUP = Path("assets.extra", "tf_serving_warmup_requests")


def template(name: str) -> str:
    """Returns a text of the folder `templates`, in which values are still missing."""
    return read_resource("export", "templates", name)


def write_json(path: Path, content: Any) -> None:
    """Writes `content` as indented JSON, in ASCII, creating the folder above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
