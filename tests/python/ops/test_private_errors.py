"""Errors for wrong arguments of operations that only functions and links call."""

import numpy as np
import pytest

from renga import _core
from renga.utils.type_check import InvalidType

ops = _core.ops
x, W, y = np.ones((2, 4, 5, 5)), np.ones((6, 2, 3, 3)), np.ones((2, 6, 3, 3))
WINDOW = ((1, 1), (0, 0), (1, 1), 2)


def window(**changes):
    names = ("stride", "pad", "dilate", "groups")
    return tuple(changes.get(name, value) for name, value in zip(names, WINDOW))


@pytest.mark.parametrize("number", [1.5, None, "1", 2**64, [1]])
def test_slices_are_integers(number):
    with pytest.raises(TypeError):
        ops.slice(np.ones(5), [(number, 2, 1)])


@pytest.mark.parametrize(
    "error, changes",
    [
        (ValueError, {"stride": (0, 1)}),
        (ValueError, {"pad": (0, -1)}),
        (ValueError, {"dilate": (1, 2**62)}),
        (ValueError, {"groups": 0}),
        (ValueError, {"groups": -(2**63)}),
        (InvalidType, {"groups": 4}),
    ],
)
def test_windows_of_block_convolutions(error, changes):
    wrong = window(**changes)
    for call in (
        lambda: ops.block_convolution(x, W, None, wrong, (3, 3)),
        lambda: ops.block_convolution_input_grad(y, W, None, wrong, (5, 5)),
        lambda: ops.block_convolution_weight_grad(y, x, wrong, (3, 3)),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize("extents", [(0, 3), (3, -1)])
def test_extents_of_block_convolutions(extents):
    with pytest.raises(ValueError, match="above 0"):
        ops.block_convolution(x, W, None, WINDOW, extents)
    with pytest.raises(ValueError, match="above 0"):
        ops.block_convolution_weight_grad(y, x, WINDOW, extents)


def test_channels_of_block_convolutions():
    with pytest.raises(InvalidType, match="channels"):
        ops.block_convolution(x[:, :2], W, None, WINDOW, (3, 3))
    with pytest.raises(InvalidType, match="channels"):
        ops.block_convolution_input_grad(y[:, :4], W, None, WINDOW, (5, 5))
    with pytest.raises(InvalidType, match="images"):
        ops.block_convolution_weight_grad(y[:1], x, WINDOW, (3, 3))


@pytest.mark.parametrize("offset", [-1, 1, 255, 2**62])
def test_channel_offset(offset):
    ones = np.ones(4)
    with pytest.raises(ValueError, match="first channel"):
        ops.multi_node_batch_normalization(
            x, ones, ones, (lambda local: local[None], True, offset)
        )
