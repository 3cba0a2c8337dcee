"""F.where against numpy.where, in every order of memory, with broadcast operands."""

import itertools

import numpy
import pytest

import renga
import renga.functions as F

SHAPE = (3, 5, 37)
# Views of one shape.
LAYOUTS = {
    "contiguous": lambda draw: draw(SHAPE),
    "repeated rows": lambda draw: numpy.broadcast_to(draw((37,)), SHAPE),
    "repeated elements": lambda draw: numpy.broadcast_to(draw((3, 5, 1)), SHAPE),
    "reversed": lambda draw: draw(SHAPE)[..., ::-1],
    "transposed": lambda draw: draw(SHAPE[::-1]).transpose(2, 1, 0),
}


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@pytest.mark.parametrize("condition", LAYOUTS)
def test_values_and_gradients(dtype, condition):
    for layouts in itertools.product(LAYOUTS, repeat=2):
        check(dtype, (condition, *layouts))


def check(dtype, layouts):
    rng = numpy.random.RandomState(0)
    condition = LAYOUTS[layouts[0]](lambda shape: rng.rand(*shape) < 0.5)
    a, b = (
        LAYOUTS[layout](lambda shape: rng.randn(*shape).astype(dtype))
        for layout in layouts[1:]
    )
    a, b = renga.Variable(a, requires_grad=True), renga.Variable(b, requires_grad=True)
    y = F.where(condition, a, b)
    numpy.testing.assert_array_equal(y.array, numpy.where(condition, a.array, b.array))
    gy = rng.randn(*SHAPE).astype(dtype)
    ga, gb = renga.grad([y], [a, b], [renga.Variable(gy)])
    numpy.testing.assert_array_equal(ga.array, numpy.where(condition, gy, 0))
    numpy.testing.assert_array_equal(gb.array, numpy.where(condition, 0, gy))
