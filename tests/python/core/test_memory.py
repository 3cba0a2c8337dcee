"""The allocator's statistics and reuse."""

import gc

import numpy as np
import pytest

from renga import _core, memory


def test_stats_follow_an_array():
    gc.collect()
    before = memory.stats()
    x = _core.empty((1 << 20,), "f")
    during = memory.stats()
    assert during["in_use"] - before["in_use"] >= x.nbytes
    assert during["peak"] >= during["in_use"]
    del x
    after = memory.stats()
    assert after["in_use"] == before["in_use"]
    assert after["cached"] >= before["cached"]


def test_a_view_keeps_its_memory():
    x = _core.empty((1000,), "d")
    x[:] = np.arange(1000)
    tail = x[500:]
    del x
    for _ in range(10):  # would reuse the block if it were free
        _core.empty((1000,), "d")[:] = -1
    np.testing.assert_array_equal(tail, np.arange(500, 1000))


def test_steady_state_allocates_nothing_from_the_system():
    x = _core.Variable(np.random.rand(256, 1024).astype("f"))

    def step():
        x.cleargrad()
        _core.ops.sum(_core.ops.tanh(x * 2 + 1)).backward()

    for _ in range(3):
        step()
    before = memory.stats()["reserves"]
    for _ in range(10):
        step()
    assert memory.stats()["reserves"] == before


def test_out_of_memory_reports_the_size_and_is_recoverable():
    with pytest.raises(MemoryError, match=str(2**46 * 4)):
        _core.empty((2**46,), "f")
    x = _core.Variable(np.ones((3,), "f"))
    np.testing.assert_array_equal((x + x).array, [2, 2, 2])


def test_emptied_cache():
    del_me = _core.empty((1 << 22,), "f")
    del del_me
    assert memory.stats()["cached"] > 0
    memory.empty_cache()
    assert memory.stats()["cached"] == 0
