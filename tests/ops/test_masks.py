import numpy as np
import pytest
from keras import ops

from keras_attn.ops import masks
from keras_attn.validation import UserError


def as_lists(mask):
    return ops.convert_to_numpy(mask).astype(int).tolist()


def test_padding_mask_marks_what_is_not_zero():
    mask = masks.padding_mask(np.array([[5, 1, 0], [7, 0, 0]], "int32"))
    assert as_lists(mask) == [[1, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        (3, 3, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (2, 5, [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
        (1, 4, [[1, 1, 1, 1]]),
        (3, 2, [[0, 0], [1, 0], [1, 1]]),
    ],
)
def test_causal_mask_is_aligned_to_the_last_key(target, source, expected):
    assert as_lists(masks.causal_mask(target, source)) == expected


def test_causal_mask_takes_tensors_for_lengths():
    mask = masks.causal_mask(ops.convert_to_tensor(2, "int32"), ops.convert_to_tensor(3, "int32"))
    assert as_lists(mask) == [[1, 1, 0], [1, 1, 1]]


def test_combine_masks_ands_those_that_are_there():
    first, second = np.array([[1, 1, 0]], bool), np.array([[1], [0]], bool)
    assert as_lists(masks.combine_masks(None, first, second)) == [[1, 1, 0], [0, 0, 0]]
    assert masks.combine_masks(None, None) is None
    assert masks.combine_masks() is None


def test_attention_mask_joins_all_parts():
    rng = np.random.default_rng(2)
    query_mask, value_mask, key_mask = (rng.random((2, n)) < 0.7 for n in (3, 5, 5))
    attention = rng.random((2, 3, 5)) < 0.7
    mask = masks.attention_mask(
        query_mask, value_mask, key_mask, attention, causal=True, target_length=3, source_length=5
    )
    assert mask.shape == (2, 1, 3, 5)
    for b, t, s in np.ndindex(2, 3, 5):
        expected = query_mask[b, t] and value_mask[b, s] and key_mask[b, s] and attention[b, t, s]
        assert bool(mask[b, 0, t, s]) == bool(expected and s <= t + 2)


def test_attention_mask_leaves_dimensions_of_one():
    assert masks.attention_mask() is None
    assert masks.attention_mask(value_mask=np.ones((2, 5), bool)).shape == (2, 1, 1, 5)
    assert masks.attention_mask(query_mask=np.ones((2, 3), bool)).shape == (2, 1, 3, 1)
    heads = np.ones((2, 7, 3, 5), bool)
    assert masks.attention_mask(attention_mask=heads).shape == (2, 7, 3, 5)


def test_separate_masks_are_not_joined():
    shapes = (2, 3), (2, 5), (2, 5), (2, 3, 5)
    parts = masks.separate_masks(*(np.ones(shape, bool) for shape in shapes))
    assert [tuple(part.shape) for part in parts] == [(2, 1, 3, 1), (2, 1, 1, 5), (2, 1, 3, 5)]
    assert masks.separate_masks() == ()


def test_masks_of_a_wrong_rank_are_named():
    with pytest.raises(UserError, match=r"`query_mask` must have rank 2.*\(2, 3, 1\)"):
        masks.separate_masks(query_mask=np.ones((2, 3, 1), bool))
    with pytest.raises(UserError, match=r"`attention_mask` must have rank 2 or 3 or 4.*\(5,\)"):
        masks.attention_mask(attention_mask=np.ones(5, bool))
    with pytest.raises(UserError, match=r"`target_length` and `source_length`.*source_length=5"):
        masks.attention_mask(causal=True, source_length=5)
