"""Every public layer keeps the promises of the harness; none is without a case."""

import inspect

import keras
import pytest

from keras_attn import layers
from tests.harness import (
    CHECKS,
    SavedElsewhere,
    check_functional_model,
    check_jit,
    check_mixed_precision,
    check_subclassed_model,
    constructor_arguments,
    own_arguments,
)
from tests.layers.cases import CASES

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
PUBLIC = [
    value
    for value in (getattr(layers, name) for name in layers.__all__)
    if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
]
# Cells of RNNs take states, and are tested inside of RNNs.
CALLED_ALONE = [layer for layer in PUBLIC if not layer.__name__.endswith("Cell")]


# XLA compiles a program for each of them; on JAX it does so in every check.
CHECKED = [check for check in CHECKS if check is not check_jit or ON_TENSORFLOW]
NUMBER = {case.name: number for number, case in enumerate(CASES)}
FIRST = {case.layer: case for case in reversed(CASES)}


def is_slow(check, case):
    """Whether it compiles, or trains what another check or another case of the layer trains.

    On other backends the further cases of a layer go through one check in three.
    """
    if check is check_jit or (check is check_subclassed_model and ON_TENSORFLOW):
        return True
    if not ON_TENSORFLOW and (CHECKED.index(check) + NUMBER[case.name]) % 3:
        return case is not FIRST[case.layer]
    trains = check in (check_functional_model, check_mixed_precision, check_subclassed_model)
    return trains and case is not FIRST[case.layer]


@pytest.mark.parametrize(
    ("check", "case"),
    [
        pytest.param(
            check,
            case,
            id=f"{check.__name__.removeprefix('check_')}-{case.name}",
            marks=[pytest.mark.slow] if is_slow(check, case) else [],
        )
        for check in CHECKED
        for case in CASES
    ],
)
def test_layer(check, case):
    check(case)


@pytest.fixture(scope="module")
def saved_elsewhere(tmp_path_factory):
    return SavedElsewhere(CASES, tmp_path_factory.mktemp("models"))


@pytest.mark.tensorflow  # the file is the same on every backend
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_loads_in_a_fresh_process(case, saved_elsewhere):
    saved_elsewhere.check(case)


def test_names_of_cases_differ():
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("layer", CALLED_ALONE, ids=lambda layer: layer.__name__)
def test_every_argument_of_every_public_layer_is_varied(layer):
    cases = [case for case in CASES if case.layer is layer]
    assert cases, f"{layer.__name__} has no case in tests/layers/cases.py"
    for name, parameter in own_arguments(layer).items():
        given = [case.arguments[name] for case in cases if name in case.arguments]
        assert any(value != parameter.default for value in given), (
            f"no case gives {layer.__name__} a `{name}` other than {parameter.default!r}"
        )


@pytest.mark.parametrize("layer", PUBLIC, ids=lambda layer: layer.__name__)
def test_public_layers_are_registered_and_documented(layer):
    assert keras.saving.get_registered_name(layer) == f"keras_attn>{layer.__name__}"
    documentation = inspect.getdoc(layer)
    for name in constructor_arguments(layer):
        assert f"    {name}: " in documentation, f"`{name}` is not in the docstring"
