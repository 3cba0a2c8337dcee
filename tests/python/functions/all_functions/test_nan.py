"""NaN and infinities propagate through functions as in NumPy."""

from __future__ import annotations

import numpy
import pytest

import renga
import renga.functions as F
from renga import Variable
from renga.utils.type_check import InvalidType

NAN = numpy.nan
WITH_NAN = {
    "clip": (lambda x: F.clip(x, -1.0, 1.0), lambda x: numpy.clip(x, -1, 1)),
    "maximum": (
        lambda x: F.maximum(x, x * 0 + 1),
        lambda x: numpy.maximum(x, x * 0 + 1),
    ),
    "maximum, right": (
        lambda x: F.maximum(numpy.ones_like(x), x),
        lambda x: numpy.maximum(1, x),
    ),
    "minimum": (
        lambda x: F.minimum(x, numpy.ones_like(x)),
        lambda x: numpy.minimum(x, 1),
    ),
    "minimum, right": (
        lambda x: F.minimum(numpy.ones_like(x), x),
        lambda x: numpy.minimum(1, x),
    ),
    "hard_sigmoid": (
        F.hard_sigmoid,
        lambda x: numpy.clip(x * x.dtype.type(0.2) + x.dtype.type(0.5), 0, 1),
    ),
    "relu": (F.relu, lambda x: numpy.maximum(x, 0)),
    "relu6": (F.relu6, lambda x: numpy.clip(x, 0, 6)),
    "clipped_relu": (F.clipped_relu, lambda x: numpy.clip(x, 0, 20)),
    "leaky_relu": (
        F.leaky_relu,
        lambda x: numpy.where(x < 0, x * x.dtype.type(0.2), x),
    ),
    "sign": (F.sign, numpy.sign),
    "absolute": (F.absolute, numpy.abs),
    "max": (lambda x: F.max(x, axis=0), lambda x: x.max(0)),
    "min": (lambda x: F.min(x, axis=0), lambda x: x.min(0)),
    "max, all": (F.max, lambda x: x.max()),
    "min, all": (F.min, lambda x: x.min()),
    "argmax": (lambda x: F.argmax(x, axis=0), lambda x: x.argmax(0)),
    "argmin": (lambda x: F.argmin(x, axis=0), lambda x: x.argmin(0)),
    "maxout": (
        lambda x: F.maxout(F.reshape(x, (1, -1)), 2),
        lambda x: x.reshape(1, -1, 2).max(2),
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("name", WITH_NAN)
def test_nan_propagates(name, dtype):
    call, expected = WITH_NAN[name]
    special = [NAN, 1, -numpy.inf, numpy.inf, -3, 2.5, -0.0, 0, 30, NAN, 2, 4]
    for n in (1, 2, 3, 5):
        x = numpy.array(special * n, dtype)[: 12 * n]
        for given in (x, numpy.repeat(x, 2)[::2], x[::-1]):
            y = call(given)
            numpy.testing.assert_allclose(y.array, expected(given), rtol=2e-3)


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("channels_last", [False, True])
def test_nan_in_windows(channels_last, dtype):
    rng = numpy.random.RandomState(0)
    x = rng.randn(2, 17, 4, 4).astype(dtype)
    x[rng.rand(*x.shape) < 0.2] = NAN
    x[0, 0] = -numpy.inf
    windows = x.reshape(2, 17, 2, 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    windows = windows.reshape(2, 17, 2, 2, 4)
    if channels_last:
        x = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    y, at = F.max_pooling_2d(x, 2, return_indices=True)
    numpy.testing.assert_array_equal(y.array, windows.max(4))
    numpy.testing.assert_array_equal(at, windows.argmax(4))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", "efd")
def test_logsumexp_of_infinities(dtype):
    inf = numpy.inf
    rows = [[-inf, -inf], [inf, 1], [inf, inf], [inf, -inf], [-inf, 1], [NAN, 1]]
    rows += [[NAN, inf], [1, 2], [numpy.finfo(dtype).max, 1], [-1, -inf]]
    x = numpy.array(rows, dtype)
    # log(e^a + e^b) with NumPy's limits.
    expected = numpy.logaddexp(*x.T.astype("d"))
    y = F.logsumexp(x, axis=1)
    assert y.dtype == x.dtype
    numpy.testing.assert_allclose(y.array, expected.astype(dtype), rtol=2e-3)
    v = Variable(numpy.array([[-inf, 1, 2], [3, -inf, -inf]], dtype))
    F.sum(F.logsumexp(v, axis=1)).backward()
    e = numpy.exp(-1.0)
    expected = [[0, e / (1 + e), 1 / (1 + e)], [1, 0, 0]]
    numpy.testing.assert_allclose(v.grad, expected, rtol=2e-3)


@pytest.mark.parametrize("dtype", "efd")
def test_masked_scores(dtype):
    """Scores of -inf are impossible classes."""
    inf = numpy.inf
    x = Variable(numpy.array([[-inf, 1, 1], [0, -inf, -inf]], dtype))
    numpy.testing.assert_allclose(
        F.softmax(x).array, [[0, 0.5, 0.5], [1, 0, 0]], rtol=2e-3
    )
    log = numpy.log(0.5)
    expected = [[-inf, log, log], [0, -inf, -inf]]
    numpy.testing.assert_allclose(F.log_softmax(x).array, expected, rtol=2e-3)
    loss = F.softmax_cross_entropy(x, numpy.array([1, 0]))
    numpy.testing.assert_allclose(loss.array, -log / 2, rtol=2e-3)
    loss.backward()
    expected = [[0, -0.25, 0.25], [0, 0, 0]]
    numpy.testing.assert_allclose(x.grad, expected, atol=1e-3)
    assert F.softmax_cross_entropy(x, numpy.array([0, 0])).array == inf
    assert F.softmax_cross_entropy(x, numpy.array([-1, 0])).array == 0


def test_clip_takes_floats():
    with pytest.raises(InvalidType):
        F.clip(numpy.array([1, 2]), 0, 1)
    with pytest.raises(InvalidType):
        renga._core.ops.clip(numpy.array([2**53 + 1]), 0.0, 2.0**60)


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(7, 5), (40, 10), (33, 600), (5, 8, 13)])
def test_places_of_the_largest_and_smallest(dtype, shape):
    rng = numpy.random.default_rng(0)
    x = rng.integers(-3, 4, shape).astype(dtype)
    x[rng.random(shape) < 0.02] = NAN
    for axis in range(x.ndim):
        numpy.testing.assert_array_equal(F.argmax(x, axis).array, x.argmax(axis))
        numpy.testing.assert_array_equal(F.argmin(x, axis).array, x.argmin(axis))
