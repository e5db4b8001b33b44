import numpy as np
import pytest
from keras import ops

from keras_attn.ops.padding import order_with_padding_last, padding_last


@pytest.mark.parametrize(
    ("token_ids", "expected"),
    [
        ([[0, 0, 5, 6], [5, 0, 6, 0], [7, 3, 0, 0]], [[5, 6, 0, 0], [5, 6, 0, 0], [7, 3, 0, 0]]),
        ([[0, 9, 9, 0, 4, 0, 2]], [[9, 9, 4, 2, 0, 0, 0]]),
        ([[0, 0, 0]], [[0, 0, 0]]),
        (np.zeros((2, 0), "int32"), np.zeros((2, 0), "int32")),
        (np.zeros((0, 3), "int32"), np.zeros((0, 3), "int32")),
    ],
)
def test_tokens_move_to_the_front_in_their_order(token_ids, expected):
    token_ids = np.asarray(token_ids, "int32")
    found = ops.convert_to_numpy(padding_last(token_ids))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == "int32"


def test_the_order_can_be_undone():
    token_ids = np.array([[0, 8, 0, 4, 5, 0, 0, 9]], "int32")
    order = order_with_padding_last(token_ids)
    assert ops.convert_to_numpy(order).tolist() == [[1, 3, 4, 7, 0, 2, 5, 6]]
    aligned = padding_last(token_ids)
    undone = ops.take_along_axis(aligned, ops.argsort(order, axis=1), axis=1)
    np.testing.assert_array_equal(ops.convert_to_numpy(undone), token_ids)
