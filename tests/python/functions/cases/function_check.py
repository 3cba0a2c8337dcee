"""One check for every function: values, layouts, float16 and two gradients."""

import numpy

import renga
from renga import gradient_check

# float16 has three digits, and functions may amplify the rounding of inputs.
HALF = {"atol": 2e-2, "rtol": 2e-2}


def tuple_of(y):
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def strided(x):
    """The elements of ``x`` with a negative stride and gaps between them."""
    if not isinstance(x, numpy.ndarray) or x.ndim == 0:
        return x
    wide = numpy.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    view = wide[::-1, ..., ::2] if x.ndim > 1 else wide[::-2]
    view[...] = x
    return view


def is_float(x):
    return x.dtype.kind == "f"


def check(function, reference, *arrays, gradients=True, half=True, rtol=1e-7):
    """``function(*arrays)`` is ``reference(*arrays)``, and so are its gradients.

    ``arrays`` are of float64 or of integers; the reference computes with NumPy.
    """
    expected = tuple_of(reference(*arrays))
    for given in (
        arrays,
        tuple(map(strided, arrays)),
        tuple(map(renga.Variable, arrays)),
    ):
        before = [numpy.array(getattr(x, "array", x)) for x in given]
        ys = tuple_of(function(*given))
        assert len(ys) == len(expected)
        for y, e in zip(ys, expected):
            assert isinstance(y, renga.Variable)
            assert y.shape == numpy.shape(e) and y.dtype == numpy.float64
            numpy.testing.assert_allclose(y.array, e, rtol=rtol, atol=1e-9)
        for x, b in zip(given, before):
            numpy.testing.assert_array_equal(getattr(x, "array", x), b)
    if half:
        halves = [x.astype("e") if is_float(x) else x for x in arrays]
        for y, e in zip(tuple_of(function(*halves)), expected):
            assert y.dtype == numpy.float16
            numpy.testing.assert_allclose(y.array, e, **HALF)
    if gradients:
        check_gradients(function, arrays, ys)


def check_gradients(function, arrays, ys):
    rng = numpy.random.default_rng(7)
    gys = tuple(rng.normal(size=y.shape) for y in ys)
    ggxs = tuple(rng.normal(size=x.shape) for x in arrays if is_float(x))

    def curved(*xs):
        """Even a linear function has a second derivative then."""
        return tuple(y * y for y in tuple_of(function(*xs)))

    tolerance = {"atol": 1e-5, "rtol": 1e-4}
    gradient_check.check_backward(function, arrays, gys, eps=1e-5, **tolerance)
    gradient_check.check_double_backward(
        curved, arrays, gys, ggxs, eps=1e-5, **tolerance
    )
