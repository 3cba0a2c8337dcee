"""Floating-point operations of list entries, against counts in formulas of NumPy."""

import math

import numpy as np
import pytest
import scipy.special
from called import OPERATIONS, call_of, random_arrays
from counted_number import Number, count, elementwise
from op_cases import ANGLES, BINARY_LABELS, CASES

from renga._core import Products
from renga.profiling.operation_cost import forward_flops


def normalized(x, axis):
    return x / x.sum(axis, keepdims=True)


def softplus(x, beta):
    return np.log1p(np.exp(beta * x)) / beta


def near_and_far(size):
    near = np.minimum(size, Number(0.7))
    return near * (size - near * 0.5)


def rotated(x):
    cosines, sines = np.cos(ANGLES), np.sin(ANGLES)
    first, second = x[..., :3], x[..., 3:]
    return np.concatenate(
        [first * cosines - second * sines, second * cosines + first * sines], -1
    )


# Where the case's reference is one function of SciPy, or computes more than the result.
FORMULAS = {
    "arctanh": elementwise("arctanh", math.atanh),
    "clip": lambda x: np.minimum(np.maximum(x, Number(-0.5)), Number(0.75)),
    "clipped_relu": lambda x: np.minimum(np.maximum(x, Number(0)), Number(1.1)),
    **{
        name: elementwise(name, getattr(scipy.special, name))
        for name in (
            "digamma erf erfc erfcinv erfcx erfinv log_ndtr ndtr ndtri".split()
        )
    },
    "lgamma": elementwise("lgamma", math.lgamma),
    "polygamma": elementwise("polygamma", lambda x: scipy.special.polygamma(2, x)),
    "zeta": elementwise("zeta", lambda q: scipy.special.zeta(3.5, q)),
    "fix": elementwise("fix", math.trunc),
    "floor_divide": lambda a, b: np.floor(a / b),
    "fmod": elementwise("fmod", math.fmod),
    "hard_sigmoid": lambda x: np.minimum(
        np.maximum(x * 0.2 + 0.5, Number(0)), Number(1)
    ),
    "hard_swish": lambda x: x * np.minimum(np.maximum(x + 3, Number(0)), Number(6)) / 6,
    "huber": lambda x, t: near_and_far(abs(x - t)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sigmoid_nll": lambda x: np.where(
        BINARY_LABELS < 0, 0, softplus(np.where(BINARY_LABELS > 0, -x, x), 1)
    ),
    "rotate_pairs": rotated,
    "sign": elementwise("sign", np.sign),
}
SPECIAL_FUNCTIONS = {
    "erf": elementwise("erf", math.erf),
    "expit": FORMULAS["sigmoid"],
    "logsumexp": lambda x, axis=None: np.log(np.exp(x).sum(axis)),
    "log_softmax": lambda x, axis: x - np.log(np.exp(x).sum(axis, keepdims=True)),
    "softmax": lambda x, axis: normalized(np.exp(x), axis),
}
# Operations whose references compute more: what their cases take.
ATTENTION = 2 * (2 * 3 * 5 * 7) * (4 + 6)  # two for each of (N H L S) (E + V)
BLOCKS = [2 * (2 * 2 * 2 * 3) * (4 * 3 * 2), 2 * (2 * 2 * 3 * 2) * (2 * 3 * 2)]
TAKEN = {
    "block_convolution": BLOCKS,  # two for each of (N O H' W') (I / groups kh kw)
    "block_convolution_input_grad": BLOCKS,
    "block_convolution_weight_grad": BLOCKS,
    # Those of factorizations and of fast transforms are not of an element each.
    **{name: [0] * 4 for name in ("cholesky", "inv")},
    "det": [0] * 5,
    **{name: [0] for name in ("alignment_loss", "best_paths")},
    **{name: [0] * 6 for name in ("fft", "ifft")},
    "scaled_dot_product_attention": [*[ATTENTION] * 5, 2 * (2 * 70 * 300) * (36 + 40)],
    # Sums where windows or points overlap do not count.
    "unpooling_2d": [0] * 3,
    "upsampling_2d": [0] * 6,
    "index_add": [0, 0],
    "sparse_product": [0],
    "roi_average_2d": [0],
    "roi_max_2d": [0],
    # Four products and three sums for each element.
    "resample_2d": [7 * 2 * 3 * 5 * 3, 7 * 2 * 9 * 7, 0],
    "sample_2d": [7 * 2 * 3 * 5, 7 * 2 * 2 * 3],
    # N C H' W' kh kw
    "max_pooling_2d_with_indices": [
        2 * 3 * 3 * 3 * 4,
        2 * 3 * 6 * 3 * 6,
        2 * 3 * 3 * 7 * 6,
    ],
}
COUNTED = [name for name in OPERATIONS if name not in TAKEN]
SUMS_OF_PRODUCTS = [
    pytest.param(name, case, id=f"{name}-{i}")
    for name in COUNTED
    if OPERATIONS[name].flops.products != Products.none
    and OPERATIONS[name].flops.per_output == 0
    for i, case in enumerate(CASES[name])
]


def declared_and_counted(name, case):
    arrays = random_arrays(case)
    call, ys = call_of(name, case, arrays)
    values, counts = count(FORMULAS.get(name, case.reference), *arrays)
    for y, value in zip(ys, values):
        np.testing.assert_allclose(y, value, 1e-10, 1e-10)
    return forward_flops(OPERATIONS[name], call.arguments, call.results[0]), counts


@pytest.mark.parametrize("name", COUNTED)
def test_largest_case(name, monkeypatch):
    for function, formula in SPECIAL_FUNCTIONS.items():
        monkeypatch.setattr(scipy.special, function, formula)
    case = max(CASES[name], key=lambda case: sum(map(math.prod, case.shapes)))
    declared, counts = declared_and_counted(name, case)
    flops, counted = OPERATIONS[name].flops, sum(counts.values())
    if flops.per_input or flops.per_window:
        # What is done once for a sum or window is less than one for each element.
        x = math.prod(case.shapes[0])
        elements = x if flops.per_input else declared / flops.per_window
        assert abs(declared - counted) < elements / 2
    elif flops.products == Products.none or flops.per_output:
        assert declared == counted


@pytest.mark.parametrize("name, case", SUMS_OF_PRODUCTS)
def test_sums_of_products(name, case):
    declared, counts = declared_and_counted(name, case)
    assert declared == 2 * counts["mul"]
    assert set(counts) <= {"add", "mul"}


@pytest.mark.parametrize("name", TAKEN)
def test_counted_by_hand(name):
    calls = [call_of(name, case, random_arrays(case))[0] for case in CASES[name]]
    found = [forward_flops(OPERATIONS[name], c.arguments, c.results[0]) for c in calls]
    assert found == TAKEN[name]
