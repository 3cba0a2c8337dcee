"""Operators of Variables against NumPy: integers and floor division."""

from __future__ import annotations

import itertools
import operator
import warnings

import numpy
import pytest

from renga import Variable

INTEGERS = "bhilqBHIL"
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "/": operator.truediv,
}


def extremes(dtype):
    info = numpy.iinfo(dtype)
    values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, -1, -2, -7}
    values |= {2**53 + 1, -(2**53) - 1, 2**53 - 1}
    kept = [value for value in sorted(values) if info.min <= value <= info.max]
    return numpy.array(kept, dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
class TestIntegers:
    @pytest.mark.parametrize("name", OPERATORS)
    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_arrays(self, dtype, name):
        run = OPERATORS[name]
        values = extremes(dtype)
        a, b = (x.copy() for x in numpy.meshgrid(values, values))
        for right in (Variable(b), b):
            y = run(Variable(a), right).array
            expected = run(a, b)
            assert y.dtype == expected.dtype
            numpy.testing.assert_array_equal(y, expected)
        y = run(a, Variable(b)).array
        numpy.testing.assert_array_equal(y, expected)
        strided = run(Variable(a.T), Variable(b.T)).array
        numpy.testing.assert_array_equal(strided, expected.T)

    @pytest.mark.parametrize("name", OPERATORS)
    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_numbers(self, dtype, name):
        run = OPERATORS[name]
        x = extremes(dtype)
        for number in x:
            in_int64 = [numpy.int64(number)] if number < 2**63 else []
            for scalar in (int(number), number, *in_int64):
                y = run(Variable(x), scalar).array
                expected = run(x, number)
                assert y.dtype == expected.dtype
                numpy.testing.assert_array_equal(y, expected)
                y = run(scalar, Variable(x)).array
                numpy.testing.assert_array_equal(y, run(number, x))

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_powers(self, dtype):
        x = extremes(dtype)
        for n in (0, 1, 2, 3, 7):
            numpy.testing.assert_array_equal(
                (Variable(x) ** n).array, x ** x.dtype.type(n)
            )
            powers = numpy.full_like(x, n)
            numpy.testing.assert_array_equal((Variable(x) ** powers).array, x**powers)
        exponents = numpy.arange(5).astype(dtype)
        numpy.testing.assert_array_equal((2 ** Variable(exponents)).array, 2**exponents)

    @pytest.mark.parametrize("dtype", "bhilq")
    def test_negative_powers(self, dtype):
        x = numpy.array([2, 3], dtype)
        for power in (-1, numpy.array([1, -2], dtype)):
            with pytest.raises(ValueError, match="at least 0"):
                Variable(x) ** power

    def test_no_elements(self):
        x, power = Variable(numpy.zeros(0, "i")), numpy.array([-2], "i")
        assert (x**power).shape == (x // power).shape == (x / power).shape == (0,)

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_negative(self, dtype):
        x = extremes(dtype)
        numpy.testing.assert_array_equal((-Variable(x)).array, -x)

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_numbers_that_do_not_fit(self, dtype):
        info = numpy.iinfo(dtype)
        x = Variable(numpy.zeros(2, dtype))
        for number in (info.max + 1, info.min - 1, 10**30, float(2**70), numpy.inf):
            for run in (operator.add, operator.mul, operator.sub):
                with pytest.raises(OverflowError):
                    run(x, number)
                with pytest.raises(OverflowError):
                    run(number, x)

    def test_fractions(self):
        """Rounded towards 0 as in Chainer, but with a warning for fractions."""
        x = Variable(numpy.array([1, 2, 3], "i"))
        numpy.testing.assert_array_equal((x * 2.0).array, [2, 4, 6])
        assert (x * 2.0).dtype == "int32"
        for number in (1.5, numpy.float32(1.5), numpy.array([1.5, 1, 1])):
            with pytest.warns(RuntimeWarning, match="Variable of int32"):
                y = x + number
            numpy.testing.assert_array_equal(y.array, [2, 3, 4])
        with pytest.raises(ValueError):
            x + numpy.nan
        numpy.testing.assert_array_equal((x / 0.5).array, [2, 4, 6])
        numpy.testing.assert_array_equal(
            (x / numpy.array([0.5, 1, 2])).array, [2, 2, 1.5]
        )
        numpy.testing.assert_array_equal((3 / x).array, [3, 1.5, 1])

    def test_arrays_that_do_not_fit(self):
        x = Variable(numpy.array([1, 2], "b"))
        numpy.testing.assert_array_equal((x + numpy.array([1, 2])).array, [2, 4])
        unfit = [numpy.array([1, 300]), numpy.array([200, 1], "B")]
        unfit += [numpy.array([2.0**40, 1]), numpy.array([numpy.nan, 1], "f")]
        for given in unfit:
            with pytest.warns(RuntimeWarning, match="Variable of int8"):
                x + given


class TestWarnings:
    def test_division_by_zero(self):
        zero = numpy.zeros(3, "i")
        x = Variable(numpy.array([-1, 0, 5], "i"))
        for call in (lambda: x // zero, lambda: x // 0, lambda: 7 // Variable(zero)):
            with pytest.warns(RuntimeWarning, match="divide by zero"):
                numpy.testing.assert_array_equal(call().array, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning):
                x // 0
            numpy.testing.assert_array_equal((x // 2).array, [-1, 0, 2])

    @pytest.mark.parametrize("dtype", "bhilq")
    def test_overflow(self, dtype):
        least = numpy.iinfo(dtype).min
        for n in (1, 40, 1 << 18):
            x = Variable(numpy.full(n, least, dtype))
            with pytest.warns(RuntimeWarning, match="overflow"):
                y = x // -1
            numpy.testing.assert_array_equal(y.array, least)


SPECIAL = [0.0, -0.0, 0.1, -0.1, 1.0, -1.0, 0.3, 3.0, 7.5, -7.5, 1e-30, 1e30]
SPECIAL += [numpy.inf, -numpy.inf, numpy.nan, 65504.0, 6e-8]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
class TestFloorDivision:
    @pytest.mark.parametrize("dtype", "efd")
    def test_arrays_and_numbers(self, dtype):
        pairs = numpy.array(list(itertools.product(SPECIAL, SPECIAL)), dtype)
        a, b = pairs.T.copy()
        expected = a // b
        assert_same(Variable(a) // Variable(b), expected)
        assert_same(Variable(pairs.T[0]) // pairs.T[1], expected)
        for x, y, z in zip(a, b, expected):
            assert_same(Variable(numpy.array([x])) // float(y), [z])
            assert_same(float(x) // Variable(numpy.array([y])), [z])

    def test_one_tenth(self):
        assert (Variable(numpy.array(1.0)) // 0.1).array == 9
        assert (1.0 // Variable(numpy.array(0.1))).array == 9


def assert_same(y, expected):
    """Equal with the signs of zeros; NaN equals NaN."""
    expected = numpy.asarray(expected)
    numpy.testing.assert_array_equal(y.array, expected)
    numbers = ~numpy.isnan(expected)
    numpy.testing.assert_array_equal(
        numpy.signbit(y.array)[numbers], numpy.signbit(expected)[numbers]
    )


def test_other_numbers_are_refused():
    others = (1j, numpy.complex64(1j), numpy.complex128(1 + 1j), numpy.timedelta64(3))
    for number in others:
        with pytest.raises(TypeError):
            Variable(numpy.ones(2, "f")) + number
