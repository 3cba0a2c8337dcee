"""Broadcasting, casting and splitting: arguments of the functions."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType

x = numpy.arange(24.0, dtype="f").reshape(2, 3, 4)


def test_broadcast():
    y, z = F.broadcast(x, numpy.ones((3, 1), "f"))
    assert y.shape == z.shape == (2, 3, 4)
    numpy.testing.assert_array_equal(F.broadcast(x).array, x)
    with pytest.raises(InvalidType):
        F.broadcast()
    with pytest.raises(InvalidType):
        F.broadcast(x, numpy.ones((2, 1, 1, 5)))


@pytest.mark.parametrize("dtype", ["float16", numpy.float64, numpy.dtype("int32")])
def test_cast(dtype):
    y = F.cast(x, dtype)
    numpy.testing.assert_array_equal(y.array, x.astype(dtype), strict=True)


def test_cast_to_the_same_dtype_is_a_new_variable_over_the_same_numbers():
    v = renga.Variable(x)
    same = F.cast(v, "f")
    assert same is not v and numpy.shares_memory(same.array, v.array)
    with renga.no_backprop_mode():
        assert F.cast(v, "f") is v
    y = F.cast(same, "d")
    y.grad = x.astype("d")
    y.backward()
    numpy.testing.assert_array_equal(v.grad, x, strict=True)


@pytest.mark.parametrize(
    ("cut", "axis"),
    [(3, 1), (1, 0), ([1, 3], 2), ((1,), -1), (numpy.array([0, 2]), 1), ([], 0)],
)
def test_split_axis(cut, axis):
    pieces = F.split_axis(x, cut, axis)
    expected = numpy.split(x, cut if isinstance(cut, int) else list(cut), axis)
    assert isinstance(pieces, tuple) and len(pieces) == len(expected)
    for piece, part in zip(pieces, expected):
        numpy.testing.assert_array_equal(piece.array, part)


def test_split_axis_from_the_end():
    first, second = F.split_axis(x, [-1], 2)
    numpy.testing.assert_array_equal(first.array, x[:, :, :-1])
    numpy.testing.assert_array_equal(second.array, x[:, :, -1:])


def test_split_axis_gradient_where_a_piece_is_unused():
    v = renga.Variable(x)
    _, second = F.split_axis(v, [1], 1)
    second.grad = numpy.ones(second.shape, "f")
    second.backward()
    assert (v.grad[:, 0] == 0).all() and (v.grad[:, 1:] == 1).all()


def test_split_axis_arguments():
    assert isinstance(F.split_axis(x, 1, 0, force_tuple=False), renga.Variable)
    assert isinstance(F.split_axis(x, 2, 0, force_tuple=False), tuple)
    for wrong in ((2, 1), (1, 3), ([5], 2)):
        with pytest.raises(InvalidType):
            F.split_axis(x, *wrong)
    with pytest.raises(TypeError):
        F.split_axis(x, 1.5, 0)
    with pytest.raises(ValueError):
        F.split_axis(x, 0, 0)
