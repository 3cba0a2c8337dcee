"""Errors for operands that do not fit: Chainer's error types, with shapes."""

import numpy as np
import pytest

from renga import _core
from renga.utils.type_check import InvalidType

ops = _core.ops


def ones(*shape, dtype="f"):
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    "error, text, call",
    [
        (InvalidType, r"\(2, 3\) and \(4,\)", lambda: ops.add(ones(2, 3), ones(4))),
        (
            InvalidType,
            "second operand of dtype float32 .*, got float64",
            lambda: ops.add(ones(2), ones(2, dtype="d")),
        ),
        (InvalidType, "float dtype, got int32", lambda: ops.exp(ones(2, dtype="i"))),
        (InvalidType, "axis from -2 to 1, got 2", lambda: ops.sum(ones(2, 3), (2,))),
        (
            ValueError,
            r"different axes, got \(0, -2\)",
            lambda: ops.sum(ones(2, 3), (0, -2)),
        ),
        (ValueError, r"\(0, 3\)", lambda: ops.max(ones(0, 3), (0,))),
        (
            InvalidType,
            r"4 axes, got \(2, 3, 4\) and",
            lambda: ops.convolution_2d(ones(2, 3, 4), ones(2, 3, 1, 1)),
        ),
        (
            InvalidType,
            r"4 axes, got \(2, 3, 4, 4\) and \(2, 3, 1\)",
            lambda: ops.deconvolution_2d(ones(2, 3, 4, 4), ones(2, 3, 1)),
        ),
        (
            InvalidType,
            r"\(2, 3\) and \(4, 5\)",
            lambda: ops.matmul(ones(2, 3), ones(4, 5)),
        ),
        (
            InvalidType,
            r"\(N, I\).*\(2, 3\) and \(4, 2\)",
            lambda: ops.linear(ones(2, 3), ones(4, 2)),
        ),
        (
            InvalidType,
            r"\(2, 12\) and \(2, 11\)",
            lambda: ops.lstm(ones(2, 3), ones(2, 12), ones(2, 11)),
        ),
        (
            InvalidType,
            "hidden of dtype float32 as x, got float64",
            lambda: ops.lstm(ones(2, 3), ones(2, 12), ones(2, 12, dtype="d")),
        ),
        (
            InvalidType,
            r"\(2, 3\), got \(4, -1\)",
            lambda: ops.reshape(ones(2, 3), (4, -1)),
        ),
        (ValueError, "at most one -1", lambda: ops.reshape(ones(2, 3), (-1, -1))),
        (
            InvalidType,
            r"xs\[1\] of dtype float32 as xs\[0\], got float64",
            lambda: ops.concat([ones(2, 3), ones(2, 3, dtype="d")]),
        ),
        (
            InvalidType,
            r"\(2, 3\) and \(3, 3\)",
            lambda: ops.concat([ones(2, 3), ones(3, 3)]),
        ),
        (InvalidType, r"broadcast to \(4,\)", lambda: ops.broadcast_to(ones(3), (4,))),
        (
            IndexError,
            "0 to 3, got 4",
            lambda: ops.embed_id(np.array([0, 4]), ones(4, 2)),
        ),
        (
            IndexError,
            "0 to 2, got 7",
            lambda: ops.softmax_cross_entropy(ones(1, 3), np.array([7])),
        ),
        (
            InvalidType,
            r"shape \(2,\).*got \(3,\)",
            lambda: ops.softmax_nll(ones(2, 3), np.zeros(3, "i")),
        ),
        (ValueError, "0 <= ratio < 1, got 1", lambda: ops.dropout(ones(3), 1.0, 0)),
        (ValueError, "at most 16 axes", lambda: ops.reshape(ones(1), (1,) * 17)),
    ],
)
def test_error(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_forward_on_an_uninitialised_variable_raises():
    with pytest.raises(RuntimeError):
        ops.exp(_core.Variable(None))
