"""linear: batch axes."""

import numpy
import pytest

import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)
x, W, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(5, 12)), rng.normal(size=5)


def test_axes_after_the_first_are_flattened():
    expected = x.reshape(2, 12) @ W.T + b
    numpy.testing.assert_allclose(F.linear(x, W, b).array, expected)
    numpy.testing.assert_allclose(F.linear(x, W).array, expected - b)
    flat = x.reshape(2, 12)
    numpy.testing.assert_allclose(F.linear(flat, W, b).array, expected)


def test_several_batch_axes():
    y = F.linear(x, W[:, :4], b, n_batch_axes=2)
    numpy.testing.assert_allclose(y.array, x @ W[:, :4].T + b)
    gy, ggs = rng.normal(size=(2, 3, 5)), [rng.normal(size=a.shape) for a in (x, W, b)]
    ggs[1] = ggs[1][:, :4]

    def squared(x, W, b):
        return F.linear(x, W, b, n_batch_axes=2) ** 2

    gradient_check.check_backward(squared, (x, W[:, :4], b), gy)
    gradient_check.check_double_backward(squared, (x, W[:, :4], b), gy, tuple(ggs))


@pytest.mark.parametrize("rows", [1, 3, 8, 9])
def test_few_rows_of_float64(rows):
    many, weights = rng.normal(size=(rows, 77)), rng.normal(size=(130, 77))
    numpy.testing.assert_allclose(F.linear(many, weights).array, many @ weights.T)
    one = many[:, :1]
    numpy.testing.assert_allclose(
        F.linear(one, weights[:, :1]).array, one * weights.T[0]
    )


def test_wrong_arguments():
    with pytest.raises(ValueError):
        F.linear(x, W, b, n_batch_axes=0)
    for wrong in [(x, W, b, 3), (x[0, 0], W), (x, W[:, :3]), (x, W, b[:2])]:
        with pytest.raises(InvalidType):
            F.linear(*wrong)
