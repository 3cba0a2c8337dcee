"""Products and softmax of numbers of 16 bits, beside float64."""

import numpy as np
import pytest

import renga
import renga.functions as F
from tests.rounding import as_bfloat16

DTYPES = ["float16", "bfloat16"]


def numbers(dtype, *shape, seed=0):
    x = np.random.default_rng(seed).normal(size=shape).astype("f")
    if dtype == "float16":
        return renga.Variable(x.astype("e"))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        return as_bfloat16(x)


def unit(dtype):
    return 2.0**-11 if dtype == "float16" else 2.0**-8


def exact(x):
    return x.array.astype("d")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "left, right",
    [
        ((500, 16, 16), (500, 16, 16)),  # some pairs at a time
        ((500, 16, 16), (1, 16, 16)),
        ((16, 16), (500, 16, 16)),
        ((2, 3, 200, 90), (2, 3, 90, 80)),  # a pair of the first axis is too many
        ((2, 3, 400, 300), (3, 300, 80)),
        ((300, 40, 1), (300, 1, 50)),
        ((50, 1, 1, 70), (50, 3, 70, 1)),
        ((7, 1), (1, 900)),
    ],
)
def test_stacks_and_outer_products(dtype, left, right):
    a, b = numbers(dtype, *left), numbers(dtype, *right, seed=1)
    y = F.matmul(a, b)
    expected = exact(a) @ exact(b)
    scale = np.abs(exact(a)) @ np.abs(exact(b))
    assert y.shape == expected.shape
    least = 2.0**-25 if dtype == "float16" else 0
    assert (np.abs(exact(y) - expected) <= unit(dtype) * scale + least).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("few", [1, 3])
def test_few_lines_and_a_matrix_across_the_depth(dtype, few):
    # The matrix is converted in parts, whose products are added.
    a, b = numbers(dtype, few, 1200), numbers(dtype, 1200, 500, seed=1)
    expected, scale = exact(a) @ exact(b), np.abs(exact(a)) @ np.abs(exact(b))
    rounding = unit(dtype) * np.abs(expected) + 2.0**-20 * scale
    assert (np.abs(exact(F.matmul(a, b)) - expected) <= rounding).all()
    column = F.matmul(b, a, transa=True, transb=True)
    assert (np.abs(exact(column).T - expected) <= rounding).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 16, 37, 512, 1300])
@pytest.mark.parametrize("log", [False, True])
def test_gradients_of_softmax(dtype, n, log):
    x, gy = numbers(dtype, 6, n), numbers(dtype, 6, n, seed=1)
    y = (F.log_softmax if log else F.softmax)(x)
    y.grad_var = gy
    y.backward(retain_grad=True)
    v, g = exact(y), exact(gy)
    if log:
        expected = g - np.exp(v) * g.sum(1, keepdims=True)
    else:
        expected = v * (g - (v * g).sum(1, keepdims=True))
    near = unit(dtype) * np.abs(expected) + 2e-6 * np.abs(g).sum(1, keepdims=True)
    smallest = 2.0**-25 if dtype == "float16" else 0
    assert (np.abs(exact(x.grad_var) - expected) <= near + smallest).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_a_dot_product_are_the_other_vector(dtype):
    a, b = numbers(dtype, 700), numbers(dtype, 700, seed=1)
    F.matmul(a, b).backward(retain_grad=True)
    np.testing.assert_array_equal(exact(a.grad_var), exact(b))
    np.testing.assert_array_equal(exact(b.grad_var), exact(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [30, 700])
def test_gradients_of_sums_of_differences(dtype, width):
    a, b, c = (numbers(dtype, 40, width, seed=seed) for seed in range(3))
    near, far = (F.squared_difference(a, v) for v in (b, c))
    F.sum(F.sum(near - far, 1)).backward(retain_grad=True)
    x, y, z = (exact(v) for v in (a, b, c))
    for v, expected in ((b, 2 * (y - x)), (c, 2 * (x - z))):
        np.testing.assert_allclose(exact(v.grad_var), expected, 2 * unit(dtype), 1e-3)
