"""Gradient checks detect wrong gradients, and only those."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from renga.gradient_check import NondifferentiableError, check_backward
from renga.gradient_check.checks import unit_vectors

rng = numpy.random.default_rng(0)
x, gy, ggx = (rng.uniform(0.5, 1, (2, 3)) for _ in range(3))


class Wrong(renga.FunctionNode):
    """x ** 2 with a slightly wrong first or second derivative."""

    def __init__(self, first=0.0, second=0.0):
        self.first, self.second = first, second

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, indexes, grad_outputs):
        (v,) = self.get_retained_inputs()
        slope = v * (2 + self.first + self.second) - v.array * self.second
        return (grad_outputs[0] * slope,)


def wrong(**offsets):
    return lambda v: Wrong(**offsets).apply((v,))[0]


def test_numerical_grad():
    data = x.copy()
    (gx,) = gradient_check.numerical_grad(lambda: (numpy.exp(data),), (data,), (gy,))
    numpy.testing.assert_allclose(gx, gy * numpy.exp(x), 1e-5)
    numpy.testing.assert_array_equal(data, x)
    both = gradient_check.numerical_grad(
        lambda: (data * 2, None, data**2), (data, data), (None, None, gy)
    )
    numpy.testing.assert_allclose(both[1], gy * 2 * x, 1e-5)


@pytest.mark.parametrize("kink", [numpy.abs, numpy.floor])
def test_nondifferentiable_points(kink):
    data = numpy.zeros(1)
    start = (numpy.ones(1),)

    def grad(detect):
        f = lambda: (kink(data),)  # noqa: E731
        return gradient_check.numerical_grad(
            f, (data,), start, detect_nondifferentiable=detect
        )

    grad(False)
    with pytest.raises(NondifferentiableError):
        grad(True)
    data[0] = 0.5
    grad(True)


def test_correct_gradients_pass():
    check_backward(wrong(), x, gy)
    gradient_check.check_double_backward(wrong(), x, gy, ggx)
    check_backward(lambda v: (v, v * 2), x, (gy, None))
    check_backward(F.sum, x, None)
    check_backward(F.exp, x, gy, detect_nondifferentiable=True)


def test_wrong_gradients_fail():
    with pytest.raises(AssertionError):
        check_backward(wrong(first=0.1), x, gy)
    check_backward(wrong(second=0.1), x, gy)
    with pytest.raises(AssertionError):
        gradient_check.check_double_backward(wrong(second=0.1), x, gy, ggx)
    with pytest.raises(AssertionError):
        check_backward(lambda v: v * v.array, x, gy)
    with pytest.raises(NondifferentiableError):
        check_backward(F.relu, x * 0, gy, detect_nondifferentiable=True)


def test_parameters():
    p = renga.Parameter(x.copy())
    check_backward(lambda v: v * p, x, gy, p)
    gradient_check.check_double_backward(lambda v: v * v * p * p, x, gy, ggx, p, ggx)
    numpy.testing.assert_array_equal(p.array, x)
    with pytest.raises(AssertionError):
        check_backward(lambda v: v * p.array, x, gy, p)


def test_inputs_without_gradients():
    ids = numpy.array([0, 1, 1])
    check_backward(lambda i, W: F.embed_id(i, W), (ids, x), rng.normal(size=(3, 3)))
    check_backward(lambda a, b: a * b.array, (x, gy), gy, no_grads=[False, True])


def test_low_precision_with_a_precise_numerical_side():
    half = [a.astype("e") for a in (x, gy)]
    check_backward(F.exp, *half, dtype="d", atol=1e-2, rtol=1e-2)
    single = [a.astype("f") for a in (x, gy, ggx)]
    p = renga.Parameter(x.astype("f"))
    gradient_check.check_double_backward(
        lambda v: v * v * p, *single, p, single[2], dtype="d"
    )
    assert p.dtype == numpy.float32


def test_gradients_that_do_not_fit():
    for start in (gy.astype("f"), gy[0], (gy, gy)):
        with pytest.raises(ValueError):
            check_backward(F.exp, x, start)


def test_directions_have_unit_length_and_no_element_near_zero():
    shapes = [(3, 4), (), (0, 2), (50,)]
    pieces = unit_vectors(shapes)
    assert [piece.shape for piece in pieces] == shapes
    found = numpy.concatenate([piece.ravel() for piece in pieces])
    assert (found**2).sum() == pytest.approx(1)
    assert abs(found).min() >= (0.01 / found.size) ** 0.5
    assert found.min() < 0 < found.max()
    assert [piece.shape for piece in unit_vectors([(0,)])] == [(0,)]
