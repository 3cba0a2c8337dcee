"""Functions of elements, axes and signals against NumPy."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x, y, p = rng.normal(size=(3, 2, 3, 4))
divisor = abs(y) + 1
between = rng.integers(-3, 3, x.shape) + rng.uniform(0.3, 0.7, x.shape)
holes = x * (rng.uniform(size=x.shape) > 0.3)


def complex_pair(transform):
    def reference(real, imaginary):
        z = transform(real + 1j * imaginary)
        return z.real, z.imag

    return reference


CASES = {
    "fmod": (F.fmod, numpy.fmod, between * divisor, divisor),
    "fmod below 0": (F.fmod, numpy.fmod, between * divisor[0, :1], -divisor[0, :1]),
    "bias": (F.bias, lambda x, y: x + y[:, None], x, y[0, :, 0].copy()),
    "bias axis": (
        lambda x, y: F.bias(x, y, 0),
        lambda x, y: x + y[..., None],
        x,
        y[..., 0] * 2,
    ),
    "bias number": (F.bias, numpy.add, x, numpy.array(2.0)),
    "scale": (F.scale, lambda x, y: x * y[:, None], x, y[0, :, 0].copy()),
    "scale all": (lambda x, y: F.scale(x, y, 0), numpy.multiply, x, y),
    "norm": (F.batch_l2_norm_squared, lambda x: (x * x).sum((1, 2)), x),
    "cumsum": (F.cumsum, numpy.cumsum, x[0]),
    "cumsum axis": (lambda x: F.cumsum(x, -2), lambda x: x.cumsum(1), x),
    "cumsum number": (F.cumsum, numpy.cumsum, numpy.array(2.0)),
    "cumsum nothing": (F.cumsum, numpy.cumsum, numpy.zeros((0, 2))),
    "cumprod": (F.cumprod, numpy.cumprod, x[0]),
    "cumprod axis": (lambda x: F.cumprod(x, 2), lambda x: x.cumprod(2), x),
    "cumprod with zeros": (lambda x: F.cumprod(x, 2), lambda x: x.cumprod(2), holes),
    "cumprod number": (F.cumprod, numpy.cumprod, numpy.array(2.0)),
    "cumprod nothing": (F.cumprod, numpy.cumprod, numpy.zeros((0, 2))),
    "fft": (lambda *z: F.fft(z), complex_pair(numpy.fft.fft), x, y),
    "ifft": (lambda *z: F.ifft(z), complex_pair(numpy.fft.ifft), x, y),
    "identity": (F.identity, lambda x: x, x),
    "identities": (F.identity, lambda x, y: (x, y), x, y[0]),
    "between": (F.linear_interpolate, lambda p, x, y: p * x + (1 - p) * y, p, x, y),
    "squared_difference": (F.squared_difference, lambda x, y: (x - y) ** 2, x, y),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, reference, *arrays = CASES[name]
    check(function, reference, *arrays)


def test_the_imaginary_part_may_go_unused():
    v = renga.Variable(x)
    real, _ = F.fft((v, numpy.zeros_like(x)))
    real.grad = y
    real.backward()
    cosine = numpy.cos(2 * numpy.pi * numpy.outer(range(4), range(4)) / 4)
    numpy.testing.assert_allclose(v.grad, y @ cosine, atol=1e-12)


def test_sums_of_many_halves_are_exact():
    ones = numpy.ones(3000, "e")
    assert F.cumsum(ones).array[-1] == 3000


FAULTS = [
    (lambda: F.fmod(x, y.astype("f")), InvalidType),
    (lambda: F.fmod(numpy.array([5]), numpy.array([3])), InvalidType),
    (lambda: F.bias(x, numpy.ones(2)), InvalidType),
    (lambda: F.bias(x, numpy.ones((3, 4, 2))), InvalidType),
    (lambda: F.scale(x, numpy.ones(4), -1), InvalidType),
    (lambda: F.scale(x, numpy.ones(3, "f")), InvalidType),
    (lambda: F.batch_l2_norm_squared(numpy.ones(3)), InvalidType),
    (lambda: F.cumsum(x, 3), InvalidType),
    (lambda: F.cumsum(x, 1.5), TypeError),
    (lambda: F.cumsum(numpy.array([1])), InvalidType),
    (lambda: F.cumprod(x, 3), InvalidType),
    (lambda: F.cumprod(x, 1.5), TypeError),
    (lambda: F.cumprod(numpy.array([1])), InvalidType),
    (lambda: F.fft((x, x[0])), InvalidType),
    (lambda: F.ifft((x, x.astype("f"))), InvalidType),
    (lambda: F.linear_interpolate(p, x, y[0]), InvalidType),
    (lambda: F.squared_difference(x, y[0]), InvalidType),
    (lambda: F.squared_difference(x, y.astype("f")), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
