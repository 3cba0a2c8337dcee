"""Odd sizes, axes and windows are refused, or have NumPy's and Chainer's results."""

import re
import warnings

import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.utils.type_check import InvalidType
from tests.python.functions.cases import (
    axis_cases,
    convolution_cases,
    error_cases,
    shape_cases,
    window_cases,
)

NAMES = {**error_cases.namespace(F, renga.Variable), "renga": renga}
TABLES = (shape_cases, axis_cases, convolution_cases, window_cases)
f, d = NAMES["f"], NAMES["d"]


CASES = error_cases.by_name("\n".join(module.CASES.strip() for module in TABLES))


@pytest.mark.parametrize("name", CASES)
def test_outcomes(name):
    wrong = error_cases.differences(CASES[name], NAMES)
    assert not wrong, wrong


# Functions by whose names errors of other functions, which call them, may begin.
CALLED = {
    "average": ("sum",),
    "batch_matmul": ("matmul",),
    "depthwise_convolution_2d": ("convolution_2d",),
    "dilated_convolution_2d": ("convolution_2d",),
    "dstack": ("concat",),
    "f1_score": ("classification_summary",),
    "gaussian": ("multiply",),
    "hstack": ("concat",),
    "local_convolution_2d": ("im2col",),
    "mean": ("average", "sum"),
    "mean_absolute_error": ("absolute_error",),
    "pad_sequence": ("stack",),
    "precision": ("classification_summary",),
    "relu6": ("clipped_relu",),
    "scale": ("multiply",),
    "selu": ("elu",),
    "squared_error": ("squared_difference",),
    "stack": ("expand_dims",),
    "vstack": ("concat",),
    **{
        f"{name}_{n}": (f"{name}_nd",)
        for name in ("convolution", "deconvolution", "unpooling")
        + ("average_pooling", "max_pooling")
        for n in ("1d", "2d", "3d")
    },
}


# NumPy and Python tell what is no dtype, no constant to pad with, and no slice.
OF_OTHERS = {"cast", "pad", "get_item"}


def test_errors_begin_with_the_name_of_the_function():
    rows = error_cases.table(error_cases.all_cases())
    rows += [row for module in TABLES for row in error_cases.table(module.CASES)]
    wrong = []
    for call, expected in rows:
        name = re.match(r"(F\.(\w+))?", call)[2]
        is_told = expected in ("InvalidType", "ValueError", "TypeError")
        if name is None or name in OF_OTHERS or not is_told:
            continue
        with pytest.raises(Exception) as error, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(call, dict(NAMES))
        names = "|".join((name, *CALLED.get(name, ())))
        begin = rf"({names}): expected|{name}\(\) got |array: expected"
        if not re.match(begin, str(error.value)):
            wrong.append(f"{call} -> {error.value}")
    assert not wrong, "\n".join(wrong)


def test_linear_names_n_batch_axes():
    with pytest.raises(InvalidType, match="n_batch_axes=1"):
        L.Linear(4, 3)(f(2, 5, 4))
    assert L.Linear(4, 3)(f(2, 5, 4), n_batch_axes=2).shape == (2, 5, 3)


@pytest.mark.parametrize(
    ("link", "shape"),
    [
        (L.Linear(4, 3), (2, 4)),
        (L.Convolution2D(4, 3, 2), (2, 4, 5, 5)),
        (L.Deconvolution2D(4, 3, 2), (2, 4, 5, 5)),
        (L.DilatedConvolution2D(4, 3, 2), (2, 4, 5, 5)),
        (L.DepthwiseConvolution2D(4, 3, 2), (2, 4, 5, 5)),
        (L.LocalConvolution2D(4, 3, 5, 2), (2, 4, 5, 5)),
    ],
)
def test_errors_name_x_where_x_has_another_dtype_than_the_link(link, shape):
    with pytest.raises(InvalidType, match=r"expected x.*float64"):
        link(d(*shape))


def test_errors_name_b_where_only_b_has_another_dtype():
    with pytest.raises(InvalidType, match="expected b"):
        F.linear(f(2, 4), f(3, 4), d(3))
    with pytest.raises(InvalidType, match="expected b"):
        F.convolution_2d(f(1, 1, 4, 4), f(2, 1, 2, 2), d(2))
