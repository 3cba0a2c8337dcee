"""as_strided, copy and forget."""

import numpy
import pytest

import renga
import renga.functions as F
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(3, 4))


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((3, 2), (4, 1), 1),
        ((4,), (0,), None),
        ((2, 3), (-4, 1), 8),
        ((2, 2), (1, 1), 0),
    ],
)
def test_as_strided(shape, strides, offset):
    def reference(x):
        y = numpy.zeros(shape)
        for index in numpy.ndindex(*shape):
            y[index] = x.ravel()[(offset or 0) + numpy.dot(index, strides)]
        return y

    check(lambda x: F.as_strided(x, shape, strides, offset), reference, x)


def test_as_strided_out_of_bounds():
    for offset in (-1, 10):
        with pytest.raises(ValueError):
            F.as_strided(x, (3,), (1,), offset)


def test_copy():
    check(lambda x: F.copy(x, -1), lambda x: x, x)
    y = F.copy(x, "@numpy")
    y.array[...] = 0
    assert abs(x).sum() > 0
    for other in (numpy.array(["a word"]), numpy.array([True])):
        y = F.copy(other, -1)
        assert y.array is not other and (y.array == other).all() and not y.requires_grad
    with pytest.raises(RuntimeError):
        F.copy(x, 0)


def test_forget():
    def both(x, y):
        return x * y + F.sin(x), F.sum(y, 1)

    check(
        lambda x, y: F.forget(both, x, y),
        lambda x, y: (x * y + numpy.sin(x), y.sum(1)),
        x,
        rng.normal(size=x.shape),
    )
    assert isinstance(F.forget(F.exp, x), renga.Variable)


def test_forget_recomputes_in_the_backward_pass():
    calls = []

    def function(x):
        calls.append(renga.config.in_recomputing)
        return F.exp(x)

    v = renga.Variable(x)
    y = F.forget(function, v)
    F.sum(y).backward()
    assert calls == [False, True]
    numpy.testing.assert_allclose(v.grad, numpy.exp(x))


def test_forget_wants_functions_of_variables():
    with pytest.raises(TypeError):
        F.forget(None, x)
    for wrong in (lambda x: 3, lambda x: (x, 3)):
        with pytest.raises(RuntimeError):
            F.forget(wrong, x)
