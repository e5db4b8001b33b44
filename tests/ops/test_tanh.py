import keras
import numpy as np
import pytest

from keras_attn.ops.tanh import tanh
from tests.layers.differentiation import in_float64

X = np.linspace(-30, 30, 61)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-15), ("float32", 1e-6), ("bfloat16", 0.01)]
)
def test_tanh_of_every_dtype(dtype, tolerance):
    with in_float64():
        found = tanh(keras.ops.convert_to_tensor(X, dtype=dtype))
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        found = keras.ops.convert_to_numpy(keras.ops.cast(found, "float64"))
    np.testing.assert_allclose(found, np.tanh(X), atol=tolerance)
