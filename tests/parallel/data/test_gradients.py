"""What a rank sends of a parameter's gradient, and checksums of parameters."""

import zlib

import numpy as np
import pytest

import renga
from renga.parallel.data.gradients import take_gradient
from renga.parallel.data.replicas.states import checksum_of

VALUES = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], "f4")


def parameter(grad):
    param = renga.Parameter(np.zeros(VALUES.shape, "f4"))
    param.grad = grad
    return param


@pytest.mark.parametrize("with_buffer", [False, True])
@pytest.mark.parametrize(
    "grad, weight, expected",
    [
        (VALUES, 1.0, VALUES),
        (VALUES, 0.25, VALUES / 4),
        (None, 2.0, 0 * VALUES),
        (np.full_like(VALUES, np.nan), 0.0, 0 * VALUES),
    ],
)
def test_take_gradient(grad, weight, expected, with_buffer):
    param = parameter(None if grad is None else grad.copy())
    buffer = np.full_like(VALUES, 9) if with_buffer else None
    taken = take_gradient(param, weight, buffer)
    assert param.grad is None
    assert buffer is None or taken is buffer
    np.testing.assert_array_equal(taken, expected)


def test_an_array_of_the_caller_is_copied():
    grad = VALUES.copy()
    taken = take_gradient(parameter(grad))
    taken[...] = 0
    np.testing.assert_array_equal(grad, VALUES)


def test_a_gradient_in_its_buffer_stays_there():
    buffer = VALUES.copy()
    taken = take_gradient(parameter(buffer), 1.0, buffer)
    assert taken is buffer
    np.testing.assert_array_equal(buffer, VALUES)


def test_checksum():
    transposed = VALUES.T.copy().T
    expected = zlib.crc32(VALUES.tobytes() + b"\x01\x02")
    assert checksum_of([transposed, np.array([1, 2], "u1")]) == expected
    assert checksum_of([]) == 0
