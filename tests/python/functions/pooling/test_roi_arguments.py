"""Regions of interest: invalid regions and images."""

import gc

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

POOLINGS = [
    "roi_average_pooling_2d",
    "roi_average_align_2d",
    "roi_max_align_2d",
    "roi_max_pooling_2d",
]
IMAGES = renga.Variable(numpy.random.RandomState(0).randn(2, 3, 6, 6).astype("f"))
ROIS = numpy.array([[0, 0, 4, 4], [1, 1, 6, 6], [0, 2, 3, 6], [2, 0, 6, 3]], "f")


@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf, 1e38])
@pytest.mark.parametrize("name", POOLINGS)
def test_non_finite_regions(name, value):
    rois = ROIS.copy()
    rois[1, 2] = value
    if not name.endswith("align_2d") and value == 1e38:
        getattr(F, name)(IMAGES, rois, numpy.array([0, 1, 1, 0]), 2, 1.0)
        return
    with pytest.raises(ValueError):
        getattr(F, name)(IMAGES, rois, numpy.array([0, 1, 1, 0]), 2, 1.0)


@pytest.mark.parametrize("name", POOLINGS)
def test_regions_of_images_without_pixels(name):
    x = numpy.zeros((1, 3, 0, 4), "f")
    with pytest.raises(InvalidType):
        getattr(F, name)(x, ROIS[:1], numpy.array([0]), 2, 1.0)
    x = IMAGES.array[:1, :, :1, :1]  # one pixel is enough
    y = getattr(F, name)(x, ROIS[:1] / 4, numpy.array([0]), 1, 1.0)
    numpy.testing.assert_array_equal(y.array, x)


@pytest.mark.parametrize("image", [-1, 2, 0.5, numpy.nan, numpy.inf, 1e30])
def test_images_of_regions_as_floats(image):
    rois = numpy.array([[image, 0, 0, 3, 3]], "f")
    with pytest.raises((IndexError, ValueError)):
        F.roi_pooling_2d(IMAGES, rois, 2, 2, 1.0)


def test_backward_of_an_invalid_region_does_not_corrupt_memory():
    x = renga.Variable(numpy.zeros((1, 1, 4, 4), "f"))
    others = [numpy.zeros((64, 64), "f") for _ in range(20)]
    for f in (F.roi_average_pooling_2d, F.roi_average_align_2d, F.roi_max_align_2d):
        with pytest.raises(IndexError):
            F.sum(f(x, ROIS[:1], numpy.array([1], "i"), 2, 1.0)).backward()
    gc.collect()
    assert not any(other.any() for other in others)
