"""Memory shared with other libraries through DLPack."""

import numpy as np
import pytest

import renga


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "i", "l", "e", "f", "d"])
def test_out_and_in_share_memory(dtype):
    data = np.zeros((3, 4), dtype)[::-1, ::2]
    x = renga.Variable(data)
    outside = np.from_dlpack(x)
    data[0, 1] = 1
    np.testing.assert_array_equal(outside, data)
    assert np.shares_memory(outside, data)
    back = renga.from_dlpack(x)
    assert np.shares_memory(back.array, data) and back.array.strides == data.strides
    assert not back.requires_grad


def test_results_are_exported():
    y = renga.functions.exp(renga.Variable(np.ones((2, 3), "f")))
    outside = np.from_dlpack(y)
    del y
    np.testing.assert_allclose(outside, np.full((2, 3), np.e), rtol=1e-6)


class ForeignArray:
    """An array of another library: it has the protocol's two methods alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_shared_both_ways():
    memory = np.zeros((3, 2), "f")
    x = renga.from_dlpack(ForeignArray(memory.T))
    memory[1, 0] = 5
    assert x.array[0, 1] == 5
    assert np.from_dlpack(x).ctypes.data == memory.ctypes.data
