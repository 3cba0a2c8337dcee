"""pad against numpy.pad."""

import numpy
import pytest

import renga.functions as F
from renga import gradient_check

x = numpy.random.default_rng(0).normal(size=(3, 4))
WIDTHS = [1, (1, 2), ((1, 0), (0, 2)), ((1, 2),), 0]
VALUES = [{}, {"constant_values": 3}, {"constant_values": ((1, 2), (3, 4))}]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("keywords", VALUES, ids=str)
def test_constant(width, keywords):
    y = F.pad(x, width, "constant", **keywords)
    expected = numpy.pad(x, width, "constant", **keywords)
    numpy.testing.assert_array_equal(y.array, expected, strict=True)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_modes_that_copy_elements(width, mode):
    y = F.pad(x, width, mode)
    numpy.testing.assert_array_equal(y.array, numpy.pad(x, width, mode), strict=True)


@pytest.mark.parametrize("mode", ["constant", "reflect", "wrap"])
def test_gradients(mode):
    rng = numpy.random.default_rng(0)
    gy, ggx = rng.normal(size=(6, 5)), rng.normal(size=x.shape)

    def padded(v):
        return F.pad(v, ((1, 2), (0, 1)), mode) ** 2

    gradient_check.check_backward(padded, x, gy)
    gradient_check.check_double_backward(padded, x, gy, ggx)


def test_wrong_arguments():
    for width, mode, error in [
        (-1, "constant", ValueError),
        (1.5, "constant", TypeError),
        (1, "mean", ValueError),
        (1, "nothing", ValueError),
    ]:
        with pytest.raises(error):
            F.pad(x, width, mode)
    with pytest.raises(TypeError):
        F.pad(x, 1, "constant", reflect_type="odd")


@pytest.mark.parametrize("widths", [[[1, 1]] * 3, [[1, 1], [2, 2]], [1, 2, 3]], ids=str)
def test_widths_of_other_numbers_of_axes(widths):
    with pytest.raises(
        ValueError, match="pad: expected .* or 4 pairs, one for each axis"
    ):
        F.pad(numpy.ones((2, 3, 4, 5), "f"), widths, "constant")
