"""Pathfinder: two discs and dashed curves, and whether one curve joins the discs."""

import dataclasses
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_attn.data.files import Pairs
from keras_attn.data.images import png_of
from keras_attn.data.split import parts_of
from keras_attn.validation import require_positive

SIZE = 32
"""Width and height of an image."""

JOINED, APART = "joined", "apart"

# The numbers of Long Range Arena, in pixels.
_DASHES, _DISTRACTOR_DASHES, _DISTRACTORS = 14, 14 // 3, 20 // (14 // 3)
_LENGTH, _GAP, _THICKNESS, _CONTRAST = 2.0, 1.0, 0.5, 0.75
_DISC_RADIUS, _BORDER, _SEED_DISTANCE = 1.5, 1.0, 7.0
_CONTINUITY = 1.0
_SHARPEST = 1.0  # radians, of a turn

_FINE = 2  # cells a pixel, for what is occupied
_TRIES, _ATTEMPTS = 12, 60  # of a dash, and of a curve
_FIRST_BRAILLE = 0x2800  # of 256 characters, one for each gray value


def load_pathfinder(
    seed: int = 0, train: int = 20_000, validation: int = 1_000, test: int = 2_000
) -> dict[str, Pairs[str]]:
    """Generates Pathfinder-32 as texts; the same arguments always give the same data.

    A source has 1,024 characters, one for each pixel, row by row: the Braille character whose
    number, from U+2800 on, is the gray value. Two dashed curves of 14 dashes and five of four are
    in the image, and two discs: at both ends of one of the long curves (`"joined"`), or at an end
    of each (`"apart"`), equally often.

    Args:
        seed: Seed of the random generator.
        train: Number of images to train on; 160,000 in Long Range Arena.
        validation: Number of images to validate on; 20,000 in Long Range Arena.
        test: Number of images to test on; 20,000 in Long Range Arena.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive.

    Examples:
        >>> pairs = load_pathfinder(train=2, validation=1, test=1)["train"]
        >>> len(pairs.sources[0]), pairs.targets[0] in ("joined", "apart")
        (1024, True)

    References:
        Linsley et al., 2018, https://arxiv.org/abs/1805.08315.
        Tay et al., 2021, https://arxiv.org/abs/2011.04006, section 2.2.5; the numbers are those of
        its data: dashes 2 pixels long, 0.5 thick and 1 apart, discs of radius 1.5, continuity 1.
    """
    return _parts(
        lambda number, pixels: "".join(chr(_FIRST_BRAILLE + int(value)) for value in pixels.flat),
        seed,
        train,
        validation,
        test,
    )


def load_pathfinder_images(
    seed: int = 0, train: int = 20_000, validation: int = 1_000, test: int = 2_000
) -> dict[str, Pairs]:
    """Generates the images of `load_pathfinder` as gray PNG images.

    Args:
        seed: Seed of the random generator.
        train: Number of images to train on.
        validation: Number of images to validate on.
        test: Number of images to test on.

    Returns:
        The parts `"train"`, `"validation"` and `"test"`.

    Raises:
        UserError: A size is not positive.

    Examples:
        >>> pairs = load_pathfinder_images(train=2, validation=1, test=1)["train"]
        >>> images_to_array(pairs.sources, height=32, width=32, channels=1).shape
        (2, 32, 32, 1)
    """
    return _parts(
        lambda number, pixels: png_of(pixels, f"pathfinder {number}"),
        seed,
        train,
        validation,
        test,
    )


def _parts(
    source_of: Callable[[int, np.ndarray], Any], seed: int, train: int, validation: int, test: int
) -> dict[str, Pairs]:
    sizes = {"train": train, "validation": validation, "test": test}
    require_positive(**sizes)
    parts = (part for part, size in sizes.items() for _ in range(size))
    images = pathfinder_images(seed)
    return parts_of(
        (
            (part, source_of(number, pixels), JOINED if is_joined else APART)
            for number, (part, (pixels, is_joined)) in enumerate(zip(parts, images, strict=False))
        ),
        "pathfinder",
    )


def pathfinder_images(seed: int) -> Iterator[tuple[np.ndarray, bool]]:
    """Generates images without an end.

    Args:
        seed: Seed of the random generator.

    Yields:
        Gray values, uint8 (32, 32), and whether a curve joins the discs.
    """
    rng = random.Random(seed)
    while True:
        is_joined = rng.random() < 0.5
        curves = None
        while curves is None:
            curves = _curves(rng)
        first, second = curves[:2]
        discs = (first.start, first.end) if is_joined else (first.start, second.start)
        yield _drawn(curves, discs), is_joined


@dataclasses.dataclass
class _Curve:
    """Dashes one after the other, each from a point to a point."""

    dashes: list[tuple[float, float, float, float]]

    @property
    def start(self) -> tuple[float, float]:
        return self.dashes[0][:2]

    @property
    def end(self) -> tuple[float, float]:
        return self.dashes[-1][2:]


def _curves(rng: random.Random) -> list[_Curve] | None:
    """Curves that do not touch, the two long ones first; `None` where one finds no room."""
    occupied = bytearray((SIZE * _FINE) ** 2)
    curves: list[_Curve] = []
    for dashes in (_DASHES, _DASHES, *[_DISTRACTOR_DASHES] * _DISTRACTORS):
        away = curves[0].start if len(curves) == 1 else None
        for _ in range(_ATTEMPTS):
            # What a failed attempt marked is forgotten.
            marked = bytearray(occupied)
            curve = _grown(rng, dashes, marked, away)
            if curve is not None:
                occupied = marked
                curves.append(curve)
                break
        else:
            return None
    return curves


def _grown(
    rng: random.Random, count: int, occupied: bytearray, away: tuple[float, float] | None
) -> _Curve | None:
    """A curve that grows dash by dash where nothing is, and marks its place."""
    x, y = (rng.uniform(_BORDER, SIZE - _BORDER) for _ in range(2))
    if away is not None and math.dist((x, y), away) < _SEED_DISTANCE:
        return None
    angle = rng.uniform(0, 2 * math.pi)
    dashes: list[tuple[float, float, float, float]] = []
    for number in range(count):
        for tried in range(_TRIES):
            # The greater the continuity, the straighter the curve, but it avoids others.
            spread = (0.4 + 0.1 * tried) / _CONTINUITY
            turned = angle
            if number:
                turned += max(-_SHARPEST, min(_SHARPEST, rng.gauss(0, spread)))
            across, down = math.cos(turned), math.sin(turned)
            dash = (x, y, x + _LENGTH * across, y + _LENGTH * down)
            if _is_free(dash, occupied):
                break
        else:
            return None
        if dashes:
            _mark(dashes[-1], occupied)  # only now, since its successor is near
        dashes.append(dash)
        angle = turned
        x, y = dash[2] + _GAP * across, dash[3] + _GAP * down
    _mark(dashes[-1], occupied)
    return _Curve(dashes)


def _points(dash: tuple[float, float, float, float]) -> Iterator[tuple[float, float]]:
    steps = int(_LENGTH * _FINE)
    for step in range(steps + 1):
        part = step / steps
        yield dash[0] + part * (dash[2] - dash[0]), dash[1] + part * (dash[3] - dash[1])


def _is_free(dash: tuple[float, float, float, float], occupied: bytearray) -> bool:
    for x, y in _points(dash):
        if not (_BORDER <= x < SIZE - _BORDER and _BORDER <= y < SIZE - _BORDER):
            return False
        if occupied[int(y * _FINE) * SIZE * _FINE + int(x * _FINE)]:
            return False
    return True


def _mark(dash: tuple[float, float, float, float], occupied: bytearray) -> None:
    """Marks the cells at most a gap away from a dash."""
    reach, width = int((_GAP + _THICKNESS) * _FINE), SIZE * _FINE
    for x, y in _points(dash):
        column, row = int(x * _FINE), int(y * _FINE)
        left, right = max(column - reach, 0), min(column + reach + 1, width)
        for line in range(max(row - reach, 0), min(row + reach + 1, width)):
            occupied[line * width + left : line * width + right] = b"\1" * (right - left)


def _drawn(curves: list[_Curve], discs: tuple) -> np.ndarray:
    """The image, with soft edges."""
    centers = np.arange(SIZE) + 0.5
    at = np.stack(np.meshgrid(centers, centers), axis=-1)[:, :, None]  # (SIZE, SIZE, 1, 2)
    dashes = np.array([dash for curve in curves for dash in curve.dashes])
    start, along = dashes[:, :2], dashes[:, 2:] - dashes[:, :2]
    place = np.clip(np.sum((at - start) * along, axis=-1) / _LENGTH**2, 0, 1)
    distance = np.linalg.norm(at - start - place[..., None] * along, axis=-1)
    lines = np.clip(_THICKNESS / 2 + 0.5 - distance, 0, 1).max(axis=-1)
    distance = np.linalg.norm(at - np.array(discs), axis=-1)
    spots = np.clip(_DISC_RADIUS + 0.5 - distance, 0, 1).max(axis=-1)
    return np.round(255 * np.maximum(_CONTRAST * lines, spots)).astype(np.uint8)
