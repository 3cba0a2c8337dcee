"""Functions of one number over the entire range of floats, against SciPy."""

import numpy
import pytest
import scipy.special

import renga.functions as F

FUNCTIONS = {
    "absolute": numpy.abs,
    "arccos": numpy.arccos,
    "arcsin": numpy.arcsin,
    "arctan": numpy.arctan,
    "arctanh": numpy.arctanh,
    "cosh": numpy.cosh,
    "elu": lambda x: numpy.where(x >= 0, x, numpy.expm1(x)),
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "exp": numpy.exp,
    "expm1": numpy.expm1,
    # SciPy's is infinite for the least numbers.
    "lgamma": lambda x: numpy.where(
        abs(x) < 1e-300, -numpy.log(abs(x)), scipy.special.gammaln(x)
    ),
    "log": numpy.log,
    "log10": numpy.log10,
    "log1p": numpy.log1p,
    "log2": numpy.log2,
    "log_ndtr": scipy.special.log_ndtr,
    "ndtr": scipy.special.ndtr,
    "relu": lambda x: numpy.maximum(x, 0),
    "rsqrt": lambda x: 1 / numpy.sqrt(x),
    "sigmoid": scipy.special.expit,
    "sign": numpy.sign,
    "sinh": numpy.sinh,
    "softplus": lambda x: numpy.logaddexp(0, x),
    "sqrt": numpy.sqrt,
    "square": numpy.square,
    "tanh": numpy.tanh,
}
RELATIVE = {"e": 2e-3, "f": 2e-5, "d": 1e-12}


def numbers(dtype):
    info = numpy.finfo(dtype)
    low, high = float(info.smallest_subnormal), float(info.max)
    some = numpy.geomspace(low, high * 0.999, 150)
    some = numpy.concatenate([some, [0, info.tiny, high, numpy.inf, numpy.nan]])
    near = numpy.linspace(-30, 30, 121)
    return numpy.concatenate([some, -some, near]).astype(dtype)


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_extreme_values(name, dtype):
    x = numbers(dtype)
    with numpy.errstate(all="ignore"):
        expected = FUNCTIONS[name](x.astype("d")).astype(dtype)
    y = getattr(F, name)(x).array
    assert y.dtype == dtype
    least = 4 * float(numpy.finfo(dtype).tiny)
    found, expected = y.astype("d"), expected.astype("d")
    numpy.testing.assert_allclose(found, expected, rtol=RELATIVE[dtype], atol=least)
