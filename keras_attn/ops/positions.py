"""Encodings of positions that have no parameters."""

import math
from typing import Any

import keras
from keras import ops

from keras_attn.ops.attention import computing_dtype
from keras_attn.ops.slices import part
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_positive


def sinusoidal_positions(
    positions: Any,
    hidden_dim: int,
    max_wavelength: float = 10_000.0,
    dtype: str = "float32",
    interleaved: bool = True,
) -> Any:
    """Encodes positions as sines (even columns) and cosines (odd columns).

    Column 2i holds `sin(position / max_wavelength ** (2i / hidden_dim))` and column 2i + 1 the
    cosine of the same angle; with an odd `hidden_dim` there is one more sine.

    Args:
        positions: A number of positions (counted from 0), or an integer or float tensor of
            positions of any shape.
        hidden_dim: Width of the encoding.
        max_wavelength: Base of the geometric progression of wavelengths (in units of 2 pi
            positions).
        dtype: "float32" or "float64". Narrower types cannot distinguish neighboring positions,
            so cast the result and not the computation.
        interleaved: Whether sines and cosines alternate; otherwise all sines come first.

    Returns:
        Tensor (positions, hidden_dim), or (*shape of positions, hidden_dim), of `dtype`.

    Raises:
        UserError: `hidden_dim` or the number of positions is not positive, `max_wavelength` is
            not above 0, or `dtype` is narrower than float32.

    Examples:
        >>> np.asarray(sinusoidal_positions(3, hidden_dim=4)).round(2)
        array([[ 0.  ,  1.  ,  0.  ,  1.  ],
               [ 0.84,  0.54,  0.01,  1.  ],
               [ 0.91, -0.42,  0.02,  1.  ]], dtype=float32)

    Reference:
        Vaswani et al., "Attention Is All You Need", section 3.5.
    """
    require_positive(hidden_dim=hidden_dim)
    require(max_wavelength > 0, "`max_wavelength` must be above 0.", max_wavelength=max_wavelength)
    dtype = keras.backend.standardize_dtype(dtype)
    require(dtype in ("float32", "float64"), "`dtype` must be float32 or float64.", dtype=dtype)
    if isinstance(positions, int):
        require_positive(positions=positions)
        positions = ops.arange(positions, dtype="int32")
    angles = _angles(positions, hidden_dim, max_wavelength, dtype)
    waves = [ops.sin(angles), ops.cos(angles)]
    if not interleaved:
        return ops.concatenate(waves, axis=-1)[..., :hidden_dim]
    # (..., pairs, 2) -> (..., 2 * pairs)
    encoding = ops.stack(waves, axis=-1)
    encoding = ops.reshape(encoding, (*ops.shape(angles)[:-1], 2 * angles.shape[-1]))
    return encoding[..., :hidden_dim]


def rotate_by_position(x: Tensor, positions: Tensor, max_wavelength: float = 10_000.0) -> Tensor:
    """Rotates pairs of features by angles that grow with the position.

    Features i and i + width / 2 are a pair; it is turned by
    `position / max_wavelength ** (2i / width)` radians. The product of two vectors that were
    rotated so depends on the distance of their positions alone.

    Args:
        x: Tensor (batch, heads, length, width) of an even width.
        positions: Tensor (length,) or (batch, length), integers or floats.
        max_wavelength: Base of the geometric progression of wavelengths (in units of 2 pi
            positions).

    Returns:
        Tensor of the shape and dtype of `x`. Angles are computed in float32 or wider.

    Raises:
        UserError: The width is odd, or `max_wavelength` is not above 0.

    Reference:
        Su et al., 2021, https://arxiv.org/abs/2104.09864, equation 34; pairs as in GPT-NeoX.
    """
    width = x.shape[-1]
    require(width % 2 == 0, "The width of what is rotated must be even.", width=width)
    require(max_wavelength > 0, "`max_wavelength` must be above 0.", max_wavelength=max_wavelength)
    dtype = computing_dtype(x.dtype)
    angles = _angles(positions, width, max_wavelength, dtype)
    if len(angles.shape) == 3:
        angles = ops.expand_dims(angles, 1)  # (batch, 1, length, pairs)
    angles = ops.expand_dims(angles, -2)
    cosines, sines = ops.cos(angles), ops.sin(angles)
    sines = ops.concatenate([-sines, sines], axis=-2)  # (…, length, 2, pairs)
    # (first, second) -> (first, second) * cos + (second, first) * (-sin, sin): a flip costs a third
    # of slices and a concatenation, forward and backward.
    pairs = ops.reshape(x, (*ops.shape(x)[:-1], 2, width // 2))
    rotated = pairs * ops.cast(cosines, x.dtype) + ops.flip(pairs, -2) * ops.cast(sines, x.dtype)
    return ops.reshape(rotated, ops.shape(x))


def relative_position_bucket(
    distances: Tensor, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """Sorts distances into buckets: one for each small distance, ever wider ones for others.

    Args:
        distances: int32 tensor, the key's position minus the query's.
        num_buckets: Number of buckets.
        max_distance: From where on all distances share the last bucket.
        bidirectional: Whether the upper half of the buckets is for keys after the query; otherwise
            these are at distance 0.

    Returns:
        int32 tensor of the shape of `distances`.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683, section 2.1, and their code.
    """
    farthest = range(-max_distance, max_distance + 1)
    table = [_bucket(distance, num_buckets, max_distance, bidirectional) for distance in farthest]
    distances = ops.clip(distances, -max_distance, max_distance)
    return ops.take(ops.convert_to_tensor(table, dtype="int32"), distances + max_distance)


def signed_position_bucket(
    distances: Tensor, num_buckets: int | None = 256, max_distance: int = 512
) -> Tensor:
    """Sorts distances into buckets on both sides of 0, half of them for one distance each.

    Args:
        distances: int32 tensor, the query's position minus the key's.
        num_buckets: Number of buckets on each side: as many distances as half of it are exact, and
            the others share the buckets that remain, by their logarithm. `None` for a bucket for
            each distance.
        max_distance: From where on all distances share the last bucket.

    Returns:
        int32 tensor of the shape of `distances`, from 0 for the farthest keys after the query to
        `2 * (num_buckets or max_distance) - 1` for the farthest before it.

    Reference:
        He et al., 2021, https://arxiv.org/abs/2006.03654, equation 3, with the logarithmic buckets
        of the authors' second version (DeBERTa-v2).
    """
    count = max_distance if num_buckets is None else num_buckets
    table = _signed_buckets(num_buckets, max_distance)
    farthest = len(table) - 1
    table = [-bucket for bucket in reversed(table[1:])] + table
    rows = [min(max(bucket + count, 0), 2 * count - 1) for bucket in table]
    distances = ops.clip(distances, -farthest, farthest)
    return ops.take(ops.convert_to_tensor(rows, dtype="int32"), distances + farthest)


def _signed_buckets(num_buckets: int | None, max_distance: int) -> list[int]:
    """The bucket of each distance from 0 on, up to one that is beyond the last bucket."""
    if num_buckets is None:
        return list(range(max_distance + 1))
    middle = num_buckets // 2
    found = list(range(min(middle, num_buckets) + 1))
    while found[-1] < num_buckets:
        share = math.log(len(found) / middle) / math.log((max_distance - 1) / middle)
        # At a border the quotient of the logarithms may lie a rounding error above a whole number.
        found.append(math.ceil(share * (middle - 1) - 1e-9) + middle)
    return found


def relative_shift(scores: Tensor, source: Any) -> Tensor:
    """Turns scores by distance into scores by key.

    Column c of a row is for distance `greatest - c`, and each row is one position behind the
    next: row i of the result begins at column `target - 1 - i`.

    Args:
        scores: Tensor (batch, heads, target, target + source - 1).
        source: Number of keys.

    Returns:
        Tensor (batch, heads, target, source).

    Reference:
        Dai et al., 2019, https://arxiv.org/abs/1901.02860, appendix B.
    """
    batch, heads, target, columns = ops.shape(scores)
    # With one more column in front, a row's end and the next one's start are a column apart.
    scores = ops.concatenate([ops.zeros_like(scores[..., :1]), scores], axis=-1)
    scores = part(ops.reshape(scores, (batch, heads, columns + 1, target)), 2, 1, columns)
    return part(ops.reshape(scores, (batch, heads, target, columns)), 3, 0, source)


def _bucket(distance: int, num_buckets: int, max_distance: int, bidirectional: bool) -> int:
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = num_buckets // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    # At a border the quotient of the logarithms may lie a rounding error below a whole number.
    wider = math.floor(share * (num_buckets - exact) + 1e-9)
    return first + min(exact + wider, num_buckets - 1)


def _angles(positions, width, max_wavelength, dtype) -> Any:
    """The angle of each position for each pair of features, (*shape of positions, pairs)."""
    pairs = math.ceil(width / 2)
    rates = [max_wavelength ** (-2 * pair / width) for pair in range(pairs)]
    positions = ops.expand_dims(ops.cast(positions, dtype), -1)
    return positions * ops.convert_to_tensor(rates, dtype=dtype)
