"""Which cases are slow tests: most of them on JAX, which compiles each operation for long."""

from collections.abc import Callable, Iterable

import keras
import pytest


def named(names: Iterable[str], on_jax: Iterable[str], others: int = 1) -> list:
    """Parameters of tests: on JAX those in `on_jax`, else each `others`th too; others are slow."""
    names, on_jax = list(names), set(on_jax)
    assert on_jax <= set(names), f"no such cases: {sorted(on_jax - set(names))}"
    if keras.backend.backend() != "jax":
        on_jax |= set([name for name in names if name not in on_jax][::others])
    return [
        name if name in on_jax else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]


def thinned(cases: Iterable, every: int = 2, on_tensorflow: int = 2) -> list:
    """Parameters of tests: each `every`th on JAX, else each `on_tensorflow`th; others are slow."""
    cases = list(cases)
    if keras.backend.backend() != "jax":
        every = on_tensorflow
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        if number % every
        else case
        for number, case in enumerate(cases)
    ]


def quick(function: Callable) -> Callable:
    """Compiled on JAX alone, which would compile each operation of an eager call."""
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)
