"""Activations against NumPy's formulas."""

import numpy
import pytest
from scipy.special import erf, expit

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 6, 3)) * 3
w = rng.normal(size=6)

CASES = {
    "clipped_relu": (lambda x: F.clipped_relu(x, 2.0), lambda x: numpy.clip(x, 0, 2)),
    "relu6": (F.relu6, lambda x: numpy.clip(x, 0, 6)),
    "crelu": (F.crelu, lambda x: numpy.concatenate([x.clip(0), (-x).clip(0)], 1)),
    "crelu axis": (
        lambda x: F.crelu(x, -1),
        lambda x: numpy.concatenate([x.clip(0), (-x).clip(0)], 2),
    ),
    "selu": (
        F.selu,
        lambda x: (
            1.0507009873554805
            * numpy.where(x > 0, x, 1.6732632423543772 * numpy.expm1(x))
        ),
    ),
    "hard_sigmoid": (F.hard_sigmoid, lambda x: numpy.clip(0.2 * x + 0.5, 0, 1)),
    "maxout": (
        lambda x: F.maxout(x, 3),
        lambda x: numpy.stack([x[:, :3].max(1), x[:, 3:].max(1)], 1),
    ),
    "maxout axis": (lambda x: F.maxout(x, 3, -1), lambda x: x.max(2, keepdims=True)),
    "rrelu": (
        lambda x: F.rrelu(x, r=numpy.full(x.shape, 0.25, x.dtype)),
        lambda x: numpy.where(x < 0, x * 0.25, x),
    ),
    "prelu": (F.prelu, lambda x, w: numpy.where(x < 0, x * w[:, None], x), w),
    "prelu of one": (F.prelu, lambda x, w: numpy.where(x < 0, x * w, x), w[0] * 1),
    "prelu of all": (
        F.prelu,
        lambda x, w: numpy.where(x < 0, x * w, x),
        rng.normal(size=(6, 3)),
    ),
    "hard_swish": (F.hard_swish, lambda x: x * numpy.clip(x + 3, 0, 6) / 6),
    "gelu": (F.gelu, lambda x: x * (1 + erf(x / numpy.sqrt(2))) / 2),
    "gelu tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: (
            x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3))) / 2
        ),
    ),
    "silu": (F.silu, lambda x: x * expit(x)),
    "mish": (F.mish, lambda x: x * numpy.tanh(numpy.log1p(numpy.exp(x)))),
    "swish": (F.swish, lambda x, w: x * expit(w[:, None] * x), w),
}


@pytest.mark.parametrize("name", CASES)
def test_activation(name):
    function, reference, *parameters = CASES[name]
    check(function, reference, x, *map(numpy.asarray, parameters))


@pytest.mark.parametrize("slope", [0.0, 0.2, 1e-30, -0.5, 1.5])
@pytest.mark.parametrize("dtype", "efd")
def test_the_gradient_of_leaky_relu_is_the_slope_up_to_0(slope, dtype):
    """Also where slope * x is 0: for a slope of 0, and where the product underflows."""
    tiny = numpy.finfo(dtype).tiny
    x = [-3, -1, -1e-7, -tiny, -0.0, 0.0, tiny, 1e-7, 1, 3]
    x = numpy.array(x * 40, dtype)  # vectors, too
    v = renga.Variable(x)
    y = F.leaky_relu(v, slope)
    y.grad = gy = numpy.linspace(1, 2, x.size).astype(dtype)
    y.backward()
    expected = numpy.where(x > 0, gy, gy * numpy.asarray(slope, dtype))
    numpy.testing.assert_allclose(v.grad, expected, 1e-3 if dtype == "e" else 1e-6)
    (again,) = renga.grad([y], [v], [renga.Variable(gy)], enable_double_backprop=True)
    numpy.testing.assert_allclose(again.array, v.grad)


def test_the_gradient_at_the_corners_of_clipped_relu_is_0():
    v = renga.Variable(numpy.array([0.0, 6.0, 3.0]))
    F.sum(F.relu6(v)).backward()
    assert v.grad.tolist() == [0, 0, 1]


def test_hard_sigmoid_of_rounded_numbers_has_the_slope_of_the_numbers():
    # 0.2 times 2.515625 rounds to a bfloat16 whose sum with 0.5 is 1.
    v = renga.Variable(numpy.array([2.484375, 2.5, 2.515625, -2.5], "f"))
    with renga.using_config("dtype", renga.mixed_bfloat16):
        F.sum(F.hard_sigmoid(F.matmul(v, numpy.eye(4, dtype="f")))).backward()
    numpy.testing.assert_allclose(v.grad, [0.2, 0, 0, 0], rtol=2e-3)


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hard_swish"])
def test_large_numbers_pass_or_vanish(name):
    v = renga.Variable(numpy.array([-300.0, 300.0], "f"))
    y = getattr(F, name)(v)
    F.sum(y).backward()
    assert y.array.tolist() == [0, 300] and v.grad.tolist() == [0, 1]


def test_smooth_activations_keep_their_input_alone():
    v = renga.Variable(numpy.ones((4, 4), "f"))
    for function in (F.gelu, F.silu, F.mish, F.hard_swish):
        node = function(v).creator_node
        assert [i.get_variable_or_none() is v for i in node.inputs] == [True]


def test_rrelu_draws_in_training_only():
    numpy.random.seed(0)
    y, r = F.rrelu(-numpy.ones(1000), 0.2, 0.4, return_r=True)
    numpy.testing.assert_array_equal(y.array, -r)
    assert 0.2 <= r.min() < 0.21 and 0.39 < r.max() < 0.4
    with renga.using_config("train", False):
        y, r = F.rrelu(-numpy.ones(3, "e"), return_r=True)
    numpy.testing.assert_allclose(y.array, -(1 / 8 + 1 / 3) / 2, 1e-3)
    assert y.dtype == numpy.float16


FAULTS = [
    (lambda: F.clipped_relu(x.astype("i")), InvalidType),
    (lambda: F.gelu(x.astype("i")), InvalidType),
    (lambda: F.gelu(x, "exact"), ValueError),
    (lambda: F.silu(x.astype("i")), InvalidType),
    (lambda: F.crelu(x, 3), InvalidType),
    (lambda: F.crelu(x.astype("i")), InvalidType),
    (lambda: F.crelu(x, 1.5), TypeError),
    (lambda: F.hard_sigmoid(x.astype("i")), InvalidType),
    (lambda: F.maxout(x, 4), InvalidType),
    (lambda: F.maxout(x, 0), ValueError),
    (lambda: F.maxout(x.astype("i"), 3), InvalidType),
    (lambda: F.prelu(x, w[:3]), InvalidType),
    (lambda: F.prelu(x, w.astype("f")), InvalidType),
    (lambda: F.swish(x, w[:3]), InvalidType),
    (lambda: F.rrelu(x, 0.5, 0.2), ValueError),
    (lambda: F.rrelu(x, -1, 0.2), ValueError),
    (lambda: F.rrelu(x, train=False), ValueError),
    (lambda: F.rrelu(x, other=False), TypeError),
    (lambda: F.rrelu(x, r=numpy.ones(2)), InvalidType),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "exp", "log", "mish"])
def test_whole_numbers_are_refused_by_name(name):
    with pytest.raises(InvalidType, match=f"^{name}: expected a float dtype, got int"):
        getattr(F, name)(numpy.arange(3))
