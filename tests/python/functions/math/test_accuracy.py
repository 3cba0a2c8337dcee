"""Vector functions of float32, against NumPy in float64 over the whole range."""

import numpy
import pytest
from scipy import special

import renga.functions as F

SPECIAL = numpy.array(
    [0, 0.5, 1, 1.5, 2, 3, 4, 5, 127, 128, 149, 150, 2**24 - 1, 2**24, 3e9]
    + [1e-45, 1e-40, 1.1754944e-38, 1e-20, 0.99999994, 1.0000001, 3.4028235e38]
    + [numpy.inf, numpy.nan],
    "f",
)
SPECIAL = numpy.concatenate([SPECIAL, -SPECIAL])


def patterns(seed, n=200_000):
    """Floats of all bits, NaN and infinities among them."""
    bits = numpy.random.default_rng(seed).integers(0, 2**32, n, numpy.uint32)
    return bits.view("f")


def moderate(seed, low, high, n=200_000):
    return numpy.random.default_rng(seed).uniform(low, high, n).astype("f")


def pairs():
    yield tuple(a.ravel() for a in numpy.meshgrid(SPECIAL, SPECIAL))
    yield patterns(0), patterns(1)
    yield patterns(2), moderate(3, -4, 4)
    yield moderate(4, -3, 3), moderate(5, -9, 9).round()
    yield moderate(6, 0, 5), moderate(7, -50, 50)
    yield moderate(8, 0.99, 1.01), moderate(9, -9000, 9000)


def assert_within(ulps, y, exact):
    """NaN, infinities and signs of zeros are equal, others are so many ulps apart."""
    with numpy.errstate(over="ignore"):
        rounded = exact.astype("f")
    same = (y == rounded) & (numpy.signbit(y) == numpy.signbit(rounded))
    same |= numpy.isnan(y) & numpy.isnan(rounded)
    apart = numpy.abs(y.astype("d") - exact) / numpy.spacing(
        numpy.abs(rounded), where=numpy.isfinite(rounded), out=numpy.ones_like(rounded)
    )
    # One step from the largest number is infinity.
    near = numpy.isfinite(y) & numpy.isfinite(rounded) & (apart <= ulps)
    bad = numpy.flatnonzero(~(same | near))
    assert not bad.size, (bad.size, bad[:5], y[bad[:5]], exact[bad[:5]])


@pytest.mark.parametrize("n", range(6))
def test_pairs(n):
    a, b = list(pairs())[n]
    with numpy.errstate(all="ignore"):
        power = numpy.power(a.astype("d"), b.astype("d"))
        angle = numpy.arctan2(a.astype("d"), b.astype("d"))
        remainder, quotient = numpy.fmod(a, b), numpy.floor_divide(a, b)
        # NumPy rounds a quotient of floats before it is rounded down.
        exact = numpy.floor_divide(a.astype("d"), b.astype("d"))
        quotient = numpy.where(numpy.abs(a / b) < 2**24, exact.astype("f"), quotient)
    assert_within(1, F.fmod(a, b).array, remainder)
    assert_within(0, (F.identity(a) // b).array, quotient)
    assert_within(1, (F.identity(a) ** b).array, power)
    assert_within(1, F.arctan2(a, b).array, angle)


SHARES = numpy.array([0, -0.0, 1, 0.5, 1e-45, 1e-40, 0.99999994, 1.5, 2, -1], "f")
SPECIAL_FUNCTIONS = {
    "erfc": (SPECIAL, patterns(13), moderate(14, -11, 11)),
    "ndtr": (SPECIAL, patterns(15), moderate(16, -15, 15)),
    "erfinv": (SPECIAL, patterns(17), moderate(18, -1, 1), 1 - moderate(19, 0, 1) ** 4),
    "erfcinv": (SHARES, moderate(20, 0, 2), numpy.exp(moderate(21, -103, 0))),
    "ndtri": (SHARES, moderate(22, 0, 1), numpy.exp(moderate(23, -103, 0))),
}


# These functions take positive numbers, and numbers left of 0, where they have roots
# and poles.
GAMMA = {
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "polygamma 1": lambda x: special.polygamma(1, x),
    "polygamma 2": lambda x: special.polygamma(2, x),
    "polygamma 9": lambda x: special.polygamma(9, x),
    "zeta 1.5": lambda x: special.zeta(1.5, x),
    "zeta 2": lambda x: special.zeta(2, x),
    "zeta 7": lambda x: special.zeta(7, x),
}
RIGHT = (SPECIAL[SPECIAL >= 0], moderate(24, 0, 20), numpy.exp(moderate(25, -80, 80)))
LEFT = moderate(26, -9, 0, 2000)


def gamma_function(name, x):
    if name.startswith("zeta"):
        return F.zeta(numpy.float64(name[5:]), x).array
    if name.startswith("polygamma"):
        return F.polygamma(int(name[10:]), x).array
    return getattr(F, name)(x).array


@pytest.mark.parametrize("name", GAMMA)
def test_gamma_functions(name):
    for a in RIGHT:
        assert_within(1, gamma_function(name, a), GAMMA[name](a.astype("d")))


@pytest.mark.parametrize("name", GAMMA)
def test_gamma_functions_of_doubles(name):
    for a in RIGHT:
        a = a[:2000].astype("d")
        numpy.testing.assert_allclose(
            gamma_function(name, a), GAMMA[name](a), 2e-13, 2e-15
        )


@pytest.mark.parametrize("name", sorted(set(GAMMA) - {"zeta 1.5"}))
def test_gamma_functions_left_of_0(name):
    a = LEFT.astype("d")
    # This is the size of the terms that are subtracted.
    size = abs(GAMMA[name](a % 1)) + abs(GAMMA[name](1 - a % 1)) + 10
    error = gamma_function(name, a) - GAMMA[name](a)
    assert (abs(error) <= 1e-12 * size).all()


@pytest.mark.parametrize("name", ["lgamma", "digamma", "polygamma 2", "zeta 2"])
def test_gamma_functions_at_poles(name):
    x = numpy.array([0, -0.0, -1, -2, numpy.inf, numpy.nan])
    expected = GAMMA[name](x)
    numpy.testing.assert_array_equal(gamma_function(name, x), expected)


# Functions and units in the last place.
ELEMENTARY = {
    "exp": (numpy.exp, 1, (SPECIAL, moderate(27, -87, 88))),
    "expm1": (numpy.expm1, 2, (SPECIAL, patterns(28), moderate(29, -4, 4))),
    "log": (numpy.log, 2, (SPECIAL, patterns(30), moderate(31, 0.5, 2))),
    "log2": (numpy.log2, 2, (SPECIAL, patterns(32), moderate(33, 0.5, 2))),
    "log10": (numpy.log10, 2, (SPECIAL, patterns(34), moderate(35, 0.5, 2))),
    "sqrt": (numpy.sqrt, 1, (SPECIAL, patterns(36))),
    "sin": (numpy.sin, 2, (SPECIAL, moderate(43, -10, 10), moderate(44, -7e4, 7e4))),
    "cos": (numpy.cos, 2, (SPECIAL, moderate(45, -10, 10), moderate(46, -7e4, 7e4))),
    "tan": (
        numpy.tan,
        2,
        (SPECIAL, moderate(47, -10, 10), moderate(48, -6.5e4, 6.5e4)),
    ),
    "arcsin": (numpy.arcsin, 2, (SPECIAL, patterns(49), moderate(50, -1, 1))),
    "arccos": (numpy.arccos, 2, (SPECIAL, patterns(51), moderate(52, -1, 1))),
    "arctan": (numpy.arctan, 2, (SPECIAL, patterns(37), moderate(38, -4, 4))),
    "sinh": (numpy.sinh, 2, (SPECIAL, patterns(53), moderate(54, -90, 90))),
    "cosh": (numpy.cosh, 2, (SPECIAL, patterns(55), moderate(56, -90, 90))),
    "log1p": (numpy.log1p, 2, (SPECIAL, patterns(57), moderate(58, -0.9, 2))),
    "floor": (numpy.floor, 0, (SPECIAL, patterns(59), moderate(60, -9, 9))),
    "ceil": (numpy.ceil, 0, (SPECIAL, patterns(61), moderate(62, -9, 9))),
    "fix": (numpy.fix, 0, (SPECIAL, patterns(63), moderate(64, -9, 9))),
    "arctanh": (numpy.arctanh, 2, (SPECIAL, patterns(39), moderate(40, -1, 1))),
    "erfcx": (special.erfcx, 1, (SPECIAL, moderate(41, -9, 30))),
    "log_ndtr": (special.log_ndtr, 1, (SPECIAL, moderate(42, -40, 12))),
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions(name):
    function, ulps, arguments = ELEMENTARY[name]
    for a in arguments:
        with numpy.errstate(all="ignore"):
            exact = function(a.astype("d"))
        subnormal = numpy.abs(exact) < numpy.finfo("f").tiny
        if name == "exp":  # flushed to 0
            exact[subnormal] = 0
        assert_within(ulps, getattr(F, name)(a).array, exact)


WIDE = numpy.random.default_rng(47).integers(0, 2**63, 20_000).view("d")
WIDE = numpy.concatenate([WIDE, -WIDE, SPECIAL.astype("d")])
DOUBLES = {
    "exp": (-745, 710),
    "expm1": (-4, 4),
    "log": (0.5, 2),
    "log1p": (-0.9, 1),
    "log2": (0.5, 2),
    "log10": (0.5, 2),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-3, 3),
    "sin": (-7, 7),
    "cos": (-7, 7),
    "tan": (-7, 7),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctan": (-4, 4),
    "arctanh": (-0.9, 0.9),
    "sqrt": (0, 1e-5),
}


@pytest.mark.parametrize("name", DOUBLES)
def test_elementary_functions_of_doubles(name):
    low, high = DOUBLES[name]
    rng = numpy.random.default_rng(48)
    # Small numbers, and those where results overflow.
    more = rng.normal(0, 1, 20_000) ** 9, rng.uniform(700, 711, 2000)
    for a in (WIDE, rng.uniform(low, high, 20_000), *more):
        wide = a.astype(numpy.longdouble)
        with numpy.errstate(all="ignore"):
            exact = getattr(numpy, name)(wide).astype("d")
        y = getattr(F, name)(a).array
        numpy.testing.assert_allclose(y, exact, 5e-16, 1e-323)
        zero = exact == 0
        numpy.testing.assert_array_equal(
            numpy.signbit(y[zero]), numpy.signbit(exact[zero])
        )


def pairs_of_doubles():
    rng = numpy.random.default_rng(65)
    few = numpy.append(
        SPECIAL.astype("d"), [5e-324, 1e-310, 1e308, 2.0**51, 2.0**53 - 1]
    )
    yield tuple(a.ravel() for a in numpy.meshgrid(few, few))
    yield WIDE, rng.permutation(WIDE)
    yield WIDE, rng.uniform(-4, 4, WIDE.size)
    yield rng.uniform(-3, 3, 20_000), rng.uniform(-9, 9, 20_000).round()
    yield rng.uniform(0, 5, 20_000), rng.uniform(-300, 300, 20_000)
    yield rng.uniform(0.99, 1.01, 20_000), rng.uniform(-7e4, 7e4, 20_000)
    yield rng.integers(-99, 99, 20_000) * 0.1, rng.integers(1, 9, 20_000) * 0.1


@pytest.mark.parametrize("n", range(7))
def test_pairs_of_doubles(n):
    a, b = list(pairs_of_doubles())[n]
    wide = a.astype(numpy.longdouble), b.astype(numpy.longdouble)
    with numpy.errstate(all="ignore"):
        power, angle = (f(*wide).astype("d") for f in (numpy.power, numpy.arctan2))
        remainder, quotient = numpy.fmod(a, b), numpy.floor_divide(a, b)
        # NumPy rounds a quotient of floats before it is rounded down.
        exact = numpy.floor_divide(a.astype("d"), b.astype("d"))
        quotient = numpy.where(numpy.abs(a / b) < 2**24, exact.astype("f"), quotient)
    for y, exact in (((F.identity(a) ** b), power), (F.arctan2(a, b), angle)):
        numpy.testing.assert_allclose(y.array, exact, 5e-16, 1e-323)
    numpy.testing.assert_array_equal(F.fmod(a, b).array, remainder)
    numpy.testing.assert_array_equal((F.identity(a) // b).array, quotient)


# Numbers at which tables of intervals change, and their neighbours.
GRID = numpy.arange(-128, 129) / 16
GRID = numpy.concatenate([GRID, numpy.nextafter(GRID, 99), numpy.nextafter(GRID, -99)])


def test_erf():
    for a in (WIDE, GRID, numpy.random.default_rng(49).uniform(-6, 6, 20_000)):
        numpy.testing.assert_allclose(F.erf(a).array, special.erf(a), 5e-16, 1e-323)
    x = GRID.astype("f")
    x = numpy.concatenate([x, numpy.nextafter(x, numpy.float32(99))])
    assert_within(2, F.erf(x).array, special.erf(x.astype("d")))


def test_inverses_in_the_far_tail():
    """Of shares down to the least positive one."""
    p = numpy.exp(-numpy.random.default_rng(50).uniform(90, 740, 2_000))
    p = numpy.concatenate([p, [5e-324, 1e-310, 3e-308, 1e-45]])
    numpy.testing.assert_allclose(F.ndtri(p).array, special.ndtri(p), 2e-15)
    expected = special.ndtri(p[p > 1e-300] / 2) * -(0.5**0.5)
    numpy.testing.assert_allclose(F.erfcinv(p[p > 1e-300]).array, expected, 2e-15)


@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_special_functions(name):
    for a in SPECIAL_FUNCTIONS[name]:
        exact = getattr(special, name)(a.astype("d"))
        assert_within(4, getattr(F, name)(a).array, exact)


@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_special_functions_of_doubles(name):
    for a in SPECIAL_FUNCTIONS[name]:
        a = a[:2000].astype("d")
        exact = getattr(special, name)(a)
        y = getattr(F, name)(a).array
        tolerance = 1e-13 if name == "ndtr" else 3e-15  # of SciPy in the tail
        numpy.testing.assert_allclose(y, exact, tolerance, 1e-300)


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0.5, 1.5, 2, 3, -3, 0, 7.25])
def test_powers_with_a_number(exponent):
    for a in (SPECIAL, patterns(10), moderate(11, 0, 5)):
        with numpy.errstate(all="ignore"):
            exact = numpy.power(a.astype("d"), exponent)
            if abs(exponent) == 0.5:  # a root, also of -0 and -inf
                exact = numpy.sqrt(a.astype("d")) ** (2 * exponent)
        assert_within(2, (F.identity(a) ** exponent).array, exact)


@pytest.mark.parametrize("base", [2, 0.5, 1, 0, -1.5, numpy.inf])
def test_powers_of_a_number(base):
    for a in (SPECIAL, moderate(12, -150, 150)):
        with numpy.errstate(all="ignore"):
            exact = numpy.power(float(base), a.astype("d"))
        assert_within(1, (base ** F.identity(a)).array, exact)
