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


def test_results_of_the_core_go_out():
    y = renga.functions.exp(renga.Variable(np.ones((2, 3), "f")))
    outside = np.from_dlpack(y)
    del y
    np.testing.assert_allclose(outside, np.full((2, 3), np.e), rtol=1e-6)


def test_pytorch_shares_both_ways():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.zeros(3, 2)
    ours = renga.from_dlpack(theirs.T)
    theirs[1, 0] = 5
    assert ours.array[0, 1] == 5
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()
