"""Runs Keras' own tests of an attention layer, read from the installed wheel, with ours in place.

    python -m tests.layers.keras_own_tests

prints each failure with its error. Those of `keras.layers.Attention` and `AdditiveAttention` are
left out: they take a list of query and value and a list of masks, where every layer of ours is
called as `MultiHeadAttention` is.
"""

import importlib.util
import pathlib
import re
import unittest

import keras

from keras_attn.layers import MultiHeadAttention


@keras.saving.register_keras_serializable(package="keras_own_tests")
class GroupedQueryAttention(MultiHeadAttention):
    """Ours with the constructor of `keras.layers.GroupQueryAttention`."""

    def __init__(self, head_dim, num_query_heads, num_key_value_heads, **options):
        super().__init__(
            num_query_heads, head_dim, num_key_value_heads=num_key_value_heads, **options
        )

    def get_config(self):
        config = super().get_config()
        names = {"key_dim": "head_dim", "num_heads": "num_query_heads"}
        config = {names.get(name, name): value for name, value in config.items()}
        return {name: value for name, value in config.items() if name not in _FIXED}


_ERROR = re.compile(r"\w+: |\w+Error")
_FIXED = ("value_dim", "output_shape")
FILES = {
    "multi_head_attention_test": {"MultiHeadAttention": MultiHeadAttention},
    "grouped_query_attention_test": {
        "GroupedQueryAttention": GroupedQueryAttention,
        "GroupQueryAttention": GroupedQueryAttention,
    },
}


class _Layers:
    """`keras.layers` with other classes for some names."""

    def __init__(self, others: dict) -> None:
        self.__dict__.update(others)

    def __getattr__(self, name: str):
        return getattr(keras.layers, name)


def failures(file: str) -> dict[str, str]:
    """Runs the tests of one of `FILES`.

    Returns:
        For each test that fails the first line of its error, and "" for one that does not.

    Raises:
        FileNotFoundError: The wheel of Keras ships no such file.
    """
    folder = pathlib.Path(keras.__file__).parent / "src" / "layers" / "attention"
    spec = importlib.util.spec_from_file_location(f"keras_own_{file}", folder / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.layers = _Layers(FILES[file])
    found = {}
    for case in vars(module).values():
        if isinstance(case, type) and issubclass(case, unittest.TestCase):
            for test in unittest.TestLoader().loadTestsFromTestCase(case):
                found[test.id().rpartition(".")[2]] = _error(test)
    return found


def _error(test: unittest.TestCase) -> str:
    result = unittest.TestResult()
    test.run(result)
    for _, trace in result.failures + result.errors:
        if "\nSkipped: " not in trace:  # by pytest, which unittest does not know
            return next(line for line in reversed(trace.splitlines()) if _ERROR.match(line))
    return ""


if __name__ == "__main__":
    for file in FILES:
        results = failures(file)
        wrong = {name: error for name, error in results.items() if error}
        print(f"{file}: {len(results) - len(wrong)} pass, {len(wrong)} fail")
        for name, error in wrong.items():
            print(f"  {name}: {error[:300]}")
