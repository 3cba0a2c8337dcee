"""tensordot against numpy.tensordot."""

import numpy
import pytest

import renga.functions as F
from renga import gradient_check

rng = numpy.random.default_rng(0)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "axes"),
    [
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (3, 2), 1),
        ((2, 3), (4,), 0),
        ((), (3,), 0),
        ((2, 3), (2, 3), ([0, 1], [0, 1])),
        ((2, 3), (4, 3), (1, -1)),
        ((2, 3, 4), (4, 5, 2), ((0, 2), (2, 0))),
        ((2, 3), (5, 2), ([0], 1)),
    ],
)
def test_against_numpy(a_shape, b_shape, axes):
    a, b, gga, ggb = (rng.normal(size=s) for s in (a_shape, b_shape) * 2)
    y = F.tensordot(a, b, axes)
    expected = numpy.tensordot(a, b, axes)
    assert y.shape == expected.shape
    numpy.testing.assert_allclose(y.array, expected)
    gy = numpy.asarray(rng.normal(size=y.shape))

    def squared(a, b):
        return F.tensordot(a, b, axes) ** 2

    gga, ggb = numpy.asarray(gga), numpy.asarray(ggb)
    operands = numpy.asarray(a), numpy.asarray(b)
    gradient_check.check_backward(squared, operands, gy)
    gradient_check.check_double_backward(squared, operands, gy, (gga, ggb))


@pytest.mark.parametrize("axes", [1, 3, -1, ((0,), (0, 1)), (1, 2, 3), "ab"])
def test_axes_that_do_not_go_together(axes):
    with pytest.raises(ValueError):
        F.tensordot(numpy.ones((2, 3)), numpy.ones((2, 3)), axes)


@pytest.mark.parametrize("axes", [3, -1])
def test_the_error_says_how_many_axes_there_can_be(axes):
    with pytest.raises(
        ValueError, match=f"tensordot: expected 0 to 2 axes, got {axes}"
    ):
        F.tensordot(numpy.ones((2, 3)), numpy.ones((2, 3)), axes)


def test_an_axis_that_is_not_there():
    with pytest.raises(IndexError):
        F.tensordot(numpy.ones((2, 3)), numpy.ones((2, 3)), ((0,), (3,)))
