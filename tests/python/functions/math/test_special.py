"""Special functions against SciPy."""

import numpy
import pytest
from scipy import special

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
real = rng.normal(size=(2, 3))
positive = rng.uniform(1.5, 3, size=(2, 3))
share = rng.uniform(0.2, 0.8, size=(2, 3))

CASES = {
    "erfc": (F.erfc, special.erfc, real),
    "erfcx": (F.erfcx, special.erfcx, abs(real)),
    "erfinv": (F.erfinv, special.erfinv, share),
    "erfcinv": (F.erfcinv, special.erfcinv, share),
    "ndtr": (F.ndtr, special.ndtr, real),
    "log_ndtr": (F.log_ndtr, special.log_ndtr, real),
    "ndtri": (F.ndtri, special.ndtri, share),
    "lgamma": (F.lgamma, special.gammaln, positive),
    "digamma": (F.digamma, special.digamma, positive),
    "arctanh": (F.arctanh, numpy.arctanh, share),
    "fix": (F.fix, numpy.fix, real * 3),
    "of a number": (F.erfc, special.erfc, numpy.array(0.5)),
    "of nothing": (F.erfc, special.erfc, numpy.zeros((0, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    function, reference, x = CASES[name]
    check(function, reference, x, gradients=name != "fix")


@pytest.mark.parametrize("n", [0, 1, 3, numpy.array([[1], [2]])])
def test_polygamma(n):
    check(
        lambda x: F.polygamma(n, x), lambda x: special.polygamma(n, x), positive, half=0
    )


def test_polygamma_spreads_x():
    n = numpy.array([1, 2, 3])
    check(
        lambda x: F.polygamma(n, x),
        lambda x: special.polygamma(n, x),
        positive[:, :1].copy(),
    )


def test_zeta_of_complex_numbers_is_refused():
    with pytest.raises(InvalidType, match="zeta: expected x of real numbers"):
        F.zeta(1j, positive)


@pytest.mark.parametrize("s", [2.0, numpy.array([1.5, 2, 3])])
def test_zeta(s):
    check(lambda q: F.zeta(s, q), lambda q: special.zeta(s, q), positive)


def test_large_arguments():
    x = numpy.array([-40.0, 30])
    numpy.testing.assert_allclose(F.log_ndtr(x).array, special.log_ndtr(x))
    numpy.testing.assert_allclose(F.erfc(x).array, special.erfc(x))


@pytest.mark.parametrize(
    "name",
    "erfc erfcx erfinv erfcinv ndtr log_ndtr ndtri lgamma digamma arctanh".split(),
)
def test_integers_are_refused(name):
    with pytest.raises(InvalidType):
        getattr(F, name)(numpy.array([1]))


def test_faults():
    with pytest.raises(InvalidType):
        F.polygamma(numpy.array([1.0]), positive)
    with pytest.raises(InvalidType):
        F.zeta(positive, numpy.array([1]))


@pytest.mark.parametrize("order", [numpy.float16(1.7), numpy.uint8(255)])
def test_gradient_of_zeta_takes_the_next_order_exactly(order):
    q = renga.Variable(numpy.array([1.25, 2.5]))
    y = F.zeta(numpy.array([order, order]), q)
    (gq,) = renga.grad([y], [q], [renga.Variable(numpy.ones(2))])
    s = float(order)
    numpy.testing.assert_allclose(gq.array, -s * special.zeta(s + 1, q.array), 1e-12)


def test_gradient_of_polygamma_takes_the_next_order_exactly():
    x = renga.Variable(numpy.array([300.0]))
    y = F.polygamma(numpy.int8(127), x)
    (gx,) = renga.grad([y], [x], [renga.Variable(numpy.ones(1))])
    # The value is mpmath's: SciPy's zeta is a subnormal number here.
    numpy.testing.assert_allclose(gx.array, [-3.1392862709265486e-104], 1e-12)
