"""The values of tensors, where they can be seen."""

from typing import Any

import numpy as np
from keras import ops


def known_values(x: Any) -> np.ndarray | None:
    """Gives the values of a tensor, or None while a graph is traced, where it has none yet."""
    try:
        return ops.convert_to_numpy(x)
    except (AttributeError, TypeError, ValueError, NotImplementedError, RuntimeError):
        return None
