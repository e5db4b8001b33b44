"""The recorded settings of a search."""

from pathlib import Path
from typing import Any

from keras_attn.training.run_settings import read_yaml

SEARCH_FILE = "search.yaml"


def recorded_search(out: str | Path) -> dict[str, Any]:
    """What the search in a folder was asked for: "settings", "space", "tuning"; empty if none."""
    path = Path(out) / SEARCH_FILE
    return read_yaml(path) if path.is_file() else {}
