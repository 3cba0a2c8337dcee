"""Casts agree with NumPy's, also where C++ leaves the result undefined."""

import numpy as np
import pytest

from renga import _core

INTS = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16"]
INTS += ["int32", "int64"]
FLOATS = ["float16", "float32", "float64"]
# The limits of every int, values beyond them, infinities and NaN.
EDGES = [0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 300.7, -300.7, 1e5, 1e10, -1e10, 1e19, -1e19]
EDGES += [
    sign * 2.0**bits for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)
]
EDGES += [2.0**31 - 1, 2.0**31 - 0.5, -(2.0**31) - 0.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("repeats", [1, 7])  # for loops over vectors
def test_float_to_int(dtype: str, to: str, repeats: int) -> None:
    with np.errstate(all="ignore"):
        x = np.repeat(np.array(EDGES).astype(dtype), repeats)
        if to == "uint32":  # NumPy's own loops differ from each other for the others
            x = x[np.isfinite(x)]
        expected = x.astype(to)
    for view, result in ((x, expected), (x[::-2], expected[::-2])):
        y = _core.ops.cast(_core.Variable(view), to).array
        assert y.dtype == to
        np.testing.assert_array_equal(y, result)


@pytest.mark.parametrize("to", INTS + FLOATS)
@pytest.mark.parametrize("dtype", INTS)
def test_from_int(dtype: str, to: str) -> None:
    ends = [False, True]
    if dtype != "bool":
        info = np.iinfo(dtype)
        ends = [info.min, info.max, 0, 1, info.max // 3]
    x = np.array(ends, dtype)
    with np.errstate(all="ignore"):
        expected = x.astype(to)
    y = _core.ops.cast(_core.Variable(x), to).array
    assert y.dtype == to
    np.testing.assert_array_equal(y, expected)
