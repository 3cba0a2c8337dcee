"""Crops of images."""

import numpy
import pytest

from renga.utils.imgproc import oversample


def test_corners_middle_and_mirrored():
    x = numpy.arange(2 * 3 * 6 * 5).reshape(2, 3, 6, 5)
    y = oversample(x, (4, 3))
    assert y.shape == (20, 3, 4, 3) and y.dtype == x.dtype
    starts = [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]
    for n, (top, left) in enumerate(starts):
        crop = x[1, :, top : top + 4, left : left + 3]
        numpy.testing.assert_array_equal(y[10 + n], crop)
        numpy.testing.assert_array_equal(y[15 + n], crop[..., ::-1])


def test_image_that_is_too_small():
    with pytest.raises(ValueError, match=r"\(7, 3\)"):
        oversample(numpy.zeros((1, 3, 6, 5)), (7, 3))
