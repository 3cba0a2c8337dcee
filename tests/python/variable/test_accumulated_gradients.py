"""Gradients that are added to those of earlier uses and passes."""

import numpy as np
import pytest

import renga
import renga.functions as F


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype("f")


# Functions of x and W, by the kernels that compute the gradient of W.
PRODUCTS = {
    "linear": (lambda x, W: F.linear(x, W), (5, 7), (3, 7)),
    "matmul": (F.matmul, (5, 7), (7, 3)),
    "matmul of transposed": (
        lambda x, W: F.matmul(x, W, transb=True, transa=True),
        (7, 5),
        (3, 7),
    ),
    "batches of matrices": (F.matmul, (2, 5, 7), (7, 3)),
    "convolution": (
        lambda x, W: F.convolution_2d(x, W, None, 1, 1),
        (2, 32, 6, 6),
        (64, 32, 3, 3),
    ),
    "convolution of 2x2 images": (
        lambda x, W: F.convolution_2d(x, W, None, 1, 1),
        (3, 32, 2, 2),
        (32, 32, 3, 3),
    ),
    "strided convolution": (
        lambda x, W: F.convolution_2d(x, W, None, 2, 1),
        (2, 32, 8, 8),
        (32, 32, 4, 4),
    ),
    "few channels": (
        lambda x, W: F.convolution_2d(x, W),
        (2, 3, 6, 6),
        (5, 3, 3, 3),
    ),
    "1x1": (lambda x, W: F.convolution_2d(x, W), (2, 16, 6, 6), (24, 16, 1, 1)),
    "depthwise": (
        lambda x, W: F.convolution_2d(x, W, None, 1, 1, groups=16),
        (2, 16, 6, 6),
        (16, 1, 3, 3),
    ),
    "volumes": (
        lambda x, W: F.convolution_nd(x, W),
        (2, 3, 4, 4, 4),
        (5, 3, 2, 2, 2),
    ),
    "deconvolution": (
        lambda x, W: F.deconvolution_2d(x, W, None, 1, 1),
        (2, 32, 6, 6),
        (32, 64, 3, 3),
    ),
}


def term(function, x, W):
    """The gradient of one use, alone."""
    y = function(x, W)
    (gW,) = renga.grad([y], [W], [renga.Variable(numbers(*y.shape))])
    return gW.array.astype("d")


def backward(function, x, W):
    y = function(x, W)
    y.grad = numbers(*y.shape)
    y.backward()


@pytest.fixture(params=PRODUCTS)
def product(request):
    function, x, W = PRODUCTS[request.param]
    return function, numbers(*x), renga.Parameter(numbers(*W))


def test_passes_add_up(product):
    function, x, W = product
    expected = 0
    for k in range(3):
        expected = expected + term(function, x + k, W)
        backward(function, x + k, W)
        np.testing.assert_allclose(W.grad, expected, rtol=1e-4, atol=1e-3)


def test_uses_in_one_pass_add_up(product):
    function, x, W = product
    backward(lambda x, W: function(x, W) + function(x + 1, W) + function(-x, W), x, W)
    ys = [function(each, W) for each in (x, x + 1, -x)]
    gy = numbers(*ys[0].shape)
    terms = [renga.grad([y], [W], [renga.Variable(gy)])[0].array for y in ys]
    np.testing.assert_allclose(W.grad, np.sum(terms, 0, "d"), rtol=1e-4, atol=1e-3)


def test_products_of_one_variable_with_itself():
    x = renga.Parameter(numbers(4, 4))
    a = x.array.astype("d")
    for count in (1, 2):
        backward(lambda x, W: F.matmul(W, W), None, x)
        gy = numbers(4, 4).astype("d")
        expected = count * (gy @ a.T + a.T @ gy)
        np.testing.assert_allclose(x.grad, expected, rtol=1e-4)


def test_arrays_that_the_caller_holds_do_not_change(product):
    function, x, W = product
    backward(function, x, W)
    held, copied = W.grad, W.grad.copy()
    backward(function, x, W)
    np.testing.assert_array_equal(held, copied)
    np.testing.assert_allclose(W.grad, 2 * copied, rtol=1e-4, atol=1e-3)
    held, copied = W.grad_var, W.grad.copy()
    backward(function, x, W)
    np.testing.assert_array_equal(held.array, copied)


def test_gradient_of_another_shape_is_refused():
    W = renga.Parameter(numbers(3, 7))
    W.grad_var = None
    backward(F.linear, numbers(5, 7), W)
    W.array = numbers(4, 7)
    with pytest.raises(ValueError, match=r"expected the gradient .* to be of shape"):
        backward(F.linear, numbers(5, 7), W)


class Fails(renga.FunctionNode):
    def forward(self, inputs):
        return (inputs[0].copy(),)

    def backward(self, indexes, gys):
        raise RuntimeError("no gradient")


def test_a_pass_that_fails_loses_no_gradients():
    W, V = renga.Parameter(numbers(3, 7)), renga.Parameter(numbers(3, 7))
    x = numbers(5, 7)
    backward(lambda x, W: F.linear(x, W) + F.linear(x, V), x, W)
    before = W.grad.copy()
    with pytest.raises(RuntimeError, match="no gradient"):
        backward(lambda x, W: F.linear(Fails().apply((F.linear(x, W),))[0], W.T), x, V)
    np.testing.assert_array_equal(W.grad, before)
    assert V.grad is not None and np.isfinite(V.grad).all()


def test_recorded_passes_add_up():
    W = renga.Parameter(numbers(3, 7))
    x = numbers(5, 7)
    expected = 2 * term(F.linear, x, W)
    for _ in range(2):
        y = F.linear(x, W)
        y.grad = numbers(*y.shape)
        y.backward(enable_double_backprop=True)
    np.testing.assert_allclose(W.grad, expected, rtol=1e-4, atol=1e-5)


def test_optimizers_get_the_sum():
    W = renga.Parameter(numbers(3, 7))
    before, x = W.array.copy(), numbers(5, 7)
    W.update_rule = renga.optimizers.SGD(0.5).create_update_rule()
    for _ in range(2):
        backward(F.linear, x, W)
    expected = before - 0.5 * 2 * term(F.linear, x, W)
    W.update()
    np.testing.assert_allclose(W.array, expected, rtol=1e-4, atol=1e-5)
