"""Which of many cases run on JAX by default: it compiles each for long, and TensorFlow runs all."""

from collections.abc import Iterable

import keras
import pytest


def named(names: Iterable[str], on_jax: Iterable[str]) -> list:
    """Parameters of tests: all on TensorFlow; on JAX those not in `on_jax` are slow tests."""
    names, on_jax = list(names), set(on_jax)
    assert on_jax <= set(names), f"no such cases: {sorted(on_jax - set(names))}"
    if keras.backend.backend() != "jax":
        return names
    return [
        name if name in on_jax else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]
