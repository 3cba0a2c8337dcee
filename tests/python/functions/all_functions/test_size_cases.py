"""Odd sizes, axes and windows are refused, or have NumPy's and Chainer's results."""

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


@pytest.mark.parametrize(
    ("call", "expected"),
    [row for module in TABLES for row in error_cases.table(module.CASES)],
)
def test_outcome(call, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error_cases.outcome(call, NAMES) == expected


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
