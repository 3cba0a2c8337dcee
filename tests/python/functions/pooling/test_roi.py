"""Poolings of regions, cell by cell and point by point in NumPy."""

import numpy
import pytest

import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.permutation(2 * 2 * 7 * 6).reshape(2, 2, 7, 6) / 16.0
# (top, left, bottom, right): inside, over the edges, of no size, and of many pixels.
rois = numpy.array(
    [[2, 1, 9, 8], [-1, -2, 5, 7], [4, 4, 4, 4], [0, 0, 13, 11], [1, 8, 3, 15]], float
)
images = numpy.array([0, 1, 1, 0, 1], numpy.int32)
OUT, SCALE = (2, 3), 0.5


def cells(roi):
    """The pixels of every cell of a region: (i, j, row span, column span)."""
    top, left, bottom, right = numpy.round(roi * SCALE).astype(int)
    step = max(bottom - top, 1) / OUT[0], max(right - left, 1) / OUT[1]
    for i, j in numpy.ndindex(*OUT):
        rows = top + int(i * step[0]), top + int(numpy.ceil((i + 1) * step[0]))
        columns = left + int(j * step[1]), left + int(numpy.ceil((j + 1) * step[1]))
        yield i, j, numpy.clip(rows, 0, 7), numpy.clip(columns, 0, 6)


def pooled(x, reduce, outside):
    y = numpy.full((len(rois), 2, *OUT), outside, float)
    for r, (roi, n) in enumerate(zip(rois, images)):
        for i, j, (a, b), (c, d) in cells(roi):
            if a < b and c < d:
                y[r, :, i, j] = reduce(x[n, :, a:b, c:d])
    return y


def value(image, row, column):
    """Bilinear interpolation; None a pixel or more outside."""
    h, w = image.shape[1:]
    if not (-1 <= row <= h and -1 <= column <= w):
        return None
    row, column = min(max(row, 0), h - 1), min(max(column, 0), w - 1)
    y = 0
    for a in (int(row), int(row) + 1):
        for b in (int(column), int(column) + 1):
            share = max(0, 1 - abs(row - a)) * max(0, 1 - abs(column - b))
            if share:
                y = y + share * image[:, a, b]
    return y


def aligned(x, reduce, ratios):
    y = numpy.zeros((len(rois), 2, *OUT))
    for r, (roi, n) in enumerate(zip(rois, images)):
        top, left, bottom, right = roi * SCALE
        steps = max(bottom - top, 1) / OUT[0], max(right - left, 1) / OUT[1]
        counts = [ratio or int(numpy.ceil(step)) for ratio, step in zip(ratios, steps)]
        for i, j in numpy.ndindex(*OUT):
            points = [
                value(
                    x[n],
                    top + (i + (p + 0.5) / counts[0]) * steps[0],
                    left + (j + (q + 0.5) / counts[1]) * steps[1],
                )
                for p, q in numpy.ndindex(*counts)
            ]
            y[r, :, i, j] = reduce(points)
    return y


def mean_of_points(points):
    return sum((0 * p if p is None else p for p in points if p is not None), 0) / len(
        points
    )


def largest_point(points):
    outside = numpy.full(2, -numpy.inf)
    return numpy.max([outside if p is None else p for p in points], 0)


def call(function, *options, upto=None):
    return lambda x: function(
        x, rois[:upto].astype(x.dtype), images[:upto], OUT, SCALE, *options
    )


def test_roi_average_pooling_2d():
    check(
        call(F.roi_average_pooling_2d),
        lambda x: pooled(x, lambda c: c.mean((1, 2)), 0),
        x,
    )


def test_roi_max_pooling_2d():
    def largest(cell):
        return cell.max((1, 2))

    check(
        call(F.roi_max_pooling_2d, upto=4),
        lambda x: pooled(x, largest, -numpy.inf)[:4],
        x,
    )
    # The last region is partly outside of the image.
    y = call(F.roi_max_pooling_2d)(x)
    numpy.testing.assert_array_equal(y.array, pooled(x, largest, -numpy.inf))
    assert numpy.isinf(y.array).any()


def test_roi_pooling_2d_counts_the_last_pixel_in():
    regions = numpy.array([[0, 1, 2, 4, 5], [1, 0, 0, 3, 1], [1, 9, 9, 9, 9]], float)
    expected = numpy.zeros((3, 2, 2, 2))
    for r, (n, left, top, right, bottom) in enumerate(regions.astype(int)[:2]):
        region = x[n, :, top : bottom + 1, left : right + 1]
        h, w = region.shape[1] // 2, region.shape[2] // 2
        expected[r] = region.reshape(2, 2, h, 2, w).max((2, 4))
    check(
        lambda x: F.roi_pooling_2d(x, regions.astype(x.dtype), 2, 2, 1.0),
        lambda x: expected,
        x,
        gradients=False,
    )


@pytest.mark.parametrize("ratio", [None, 2, (1, 3), (None, 1)])
def test_roi_align(ratio):
    ratios = ratio if isinstance(ratio, tuple) else (ratio, ratio)
    check(
        call(F.roi_average_align_2d, ratio),
        lambda x: aligned(x, mean_of_points, ratios),
        x,
    )
    check(
        call(F.roi_max_align_2d, ratio, upto=4),
        lambda x: aligned(x, largest_point, ratios)[:4],
        x,
    )


FUNCTIONS = [
    F.roi_average_align_2d,
    F.roi_average_pooling_2d,
    F.roi_max_align_2d,
    F.roi_max_pooling_2d,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_regions(function):
    y = function(x, rois[:0], images[:0], (2, 3), 1.0)
    assert y.shape == (0, 2, 2, 3) and y.dtype == x.dtype


def test_points_outside_do_not_count():
    outside = numpy.array([[0, 30, 2, 40]], float)
    y = F.roi_max_align_2d(x, outside, images[:1], 1, 1.0, 2)
    assert (y.array == -numpy.inf).all()
    y = F.roi_average_align_2d(x, outside, images[:1], 1, 1.0, 2)
    assert (y.array == 0).all()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("region", [(0, -1.7e308, 3, 1.7e308), (1e308, 0, -1e308, 3)])
def test_regions_longer_than_any_number(function, region):
    with pytest.raises(ValueError, match="expected finite regions"):
        function(x, numpy.array([region]), images[:1], 2, 1.0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_faults(function):
    for args, error in [
        ((x[0], rois, images, 2, 1.0), InvalidType),
        ((x[:, :, :0], rois, images, 2, 1.0), InvalidType),
        ((x, rois[:, :3], images, 2, 1.0), InvalidType),
        ((x, rois, images[:2], 2, 1.0), InvalidType),
        ((x, rois.astype("f"), images, 2, 1.0), InvalidType),
        ((x, rois, rois[:, 0], 2, 1.0), InvalidType),
        ((x, rois, images, 0, 1.0), TypeError),
        ((x, rois, images, (2, 2.5), 1.0), TypeError),
        ((x, rois, images, 2, -1.0), TypeError),
        ((x, rois, images, 2, "1"), TypeError),
    ]:
        with pytest.raises(error):
            function(*args)
    if "align" in function.__name__:
        with pytest.raises(TypeError):
            function(x, rois, images, 2, 1.0, 0)
    with pytest.raises(InvalidType):
        F.roi_pooling_2d(x, rois, 2, 2, 1.0)
