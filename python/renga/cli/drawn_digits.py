"""Images of digits in a dot-matrix typeface, shifted and noisy."""

from __future__ import annotations

import numpy

# Rows of five dots, from the top.
_DOTS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "01110 10001 00001 00110 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "01110 10000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00001 01110",
)
_SIDE = 16


def draw_digits(count: int, seed: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Images and their digits. Dots are two pixels wide, of random contrast.

    Shapes:
        images: (count, 1, 16, 16) float32
        labels: (count,) int32
    """
    random = numpy.random.RandomState(seed)
    glyphs = numpy.array([[list(row) for row in dots.split()] for dots in _DOTS], int)
    glyphs = glyphs.repeat(2, axis=1).repeat(2, axis=2)  # 14 x 10 pixels
    labels = random.randint(10, size=count).astype(numpy.int32)
    images = random.normal(0, 0.3, (count, 1, _SIDE, _SIDE))
    height, width = glyphs.shape[1:]
    for image, label in zip(images, labels):
        top = random.randint(_SIDE - height + 1)
        left = random.randint(_SIDE - width + 1)
        contrast = random.uniform(0.5, 1.0)
        image[0, top : top + height, left : left + width] += contrast * glyphs[label]
    return images.astype(numpy.float32), labels
