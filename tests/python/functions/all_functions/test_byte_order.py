"""Arrays in the other byte order have the same results as native ones."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases import edge_cases

SHAPE = (2, 3)

CALLS = {
    "absolute_error": lambda x, y: F.absolute_error(x, y),
    "add": lambda x, y: F.add(x, y, y),
    "average": lambda x, y: F.average(x, axis=1, weights=y),
    "bilinear": lambda x, y: F.bilinear(x, y, numpy.ones((3, 3, 2), y.dtype)),
    "contrastive": lambda x, y: F.contrastive(x, y, numpy.array([0, 1])),
    "cross_covariance": lambda x, y: F.cross_covariance(x, y, "no"),
    "fft": lambda x, y: F.fft((x, y)),
    "fmod": lambda x, y: F.fmod(x, y),
    "gaussian_nll": lambda x, y: F.gaussian_nll(x, y, y),
    "huber_loss": lambda x, y: F.huber_loss(x, y, 1.0),
    "layer_normalization": lambda x, y: F.layer_normalization(x, y[0], y[1]),
    "mean_squared_error": lambda x, y: F.mean_squared_error(x, y),
    "prelu": lambda x, y: F.prelu(x, y[0]),
    "r2_score": lambda x, y: F.r2_score(x, y),
    "squared_difference": lambda x, y: F.squared_difference(x, y),
    "triplet": lambda x, y: F.triplet(x, y, x),
}


def operands(dtype):
    rng = numpy.random.default_rng(0)
    return [rng.uniform(0.5, 2, SHAPE).astype(dtype) for _ in range(2)]


def swapped(x):
    return x.astype(x.dtype.newbyteorder("S"))


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("name", CALLS)
def test_beside_native_arrays(name, dtype):
    x, y = operands(dtype)
    expected = edge_cases.flat(CALLS[name](x, y))
    for given in ((swapped(x), y), (x, swapped(y)), (swapped(x), swapped(y))):
        found = edge_cases.flat(CALLS[name](*given))
        for a, b in zip(found, expected):
            assert a.dtype == dtype
            numpy.testing.assert_array_equal(a.array, b.array)


def test_regions_of_images():
    x = numpy.arange(16.0).reshape(1, 1, 4, 4)
    rois, index = numpy.array([[0.0, 0.0, 4.0, 4.0]]), numpy.array([0], "i")
    y = F.roi_average_pooling_2d(x, swapped(rois), index, 1, 1.0)
    assert y.array.item() == x.mean()


LARGE = numpy.full((2, 4), 300, ">f2")  # whose squares overflow

WIDENED = {
    "average": (lambda x: F.average(numpy.repeat(x, 200, 1)), 300),
    "normalize": (lambda x: F.normalize(x), 0.5),
    "layer_normalization": (lambda x: F.layer_normalization(x, x[0], x[0]), 300),
    "group_normalization": (lambda x: F.group_normalization(x, 2, x[0], x[0]), 300),
    "local_response_normalization": (
        lambda x: F.local_response_normalization(x, 1, 0.0, 1.0, 0.5),
        1,
    ),
}


@pytest.mark.parametrize("name", WIDENED)
def test_halves_are_widened(name):
    call, expected = WIDENED[name]
    y = call(LARGE)
    assert y.dtype == numpy.float16
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-3)


@pytest.mark.parametrize("bad", [None, "x", 3, [1.0], object])
def test_objects_that_are_no_arrays(bad):
    x = renga.Variable(numpy.ones(SHAPE))
    for call in (F.absolute_error, F.fmod, F.huber_loss, F.mean_squared_error, F.prelu):
        options = (1.0,) if call is F.huber_loss else ()
        with pytest.raises(TypeError):
            call(x, bad, *options)
    for call in (F.relu6, F.decov, F.normalize):
        with pytest.raises(TypeError):
            call(bad)
    for call in (F.digamma, F.arctanh, F.erfcx):  # numbers are arrays of no axes
        with pytest.raises(InvalidType if bad == 3 else TypeError):
            call(bad)
    with pytest.raises(TypeError):
        F.flip(bad, 0)
