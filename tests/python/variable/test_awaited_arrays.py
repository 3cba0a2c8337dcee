"""Arrays whose elements arrive later, and views that tell who refers to them."""

import io
import threading

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core


class Arrival:
    """Writes the elements when it is waited for, and counts how often."""

    def __init__(self, x, error=None):
        self.x, self.error, self.calls = x, error, 0

    def __call__(self):
        self.calls += 1
        if self.error:
            raise self.error
        self.x[...] = 2


def awaited(shape=(2, 3), error=None):
    x = np.zeros(shape, "f")
    param = renga.Parameter(x)
    arrival = Arrival(x, error)
    _core.await_arrays([param], arrival)
    return param, arrival


def saved(param):
    link = renga.Link(W=(2, 3))
    link.W = param
    renga.serializers.save_npz(io.BytesIO(), link)
    return param.array


@pytest.mark.parametrize(
    "read",
    [
        lambda param: param.array,
        lambda param: (param * 1).array,
        lambda param: F.linear(np.eye(3, dtype="f"), param).array,
        lambda param: F.reshape(param, (6,)).array,
        lambda param: renga.Variable(param.array).array,
        saved,
    ],
)
def test_what_reads_them_waits_once(read):
    param, arrival = awaited()
    assert param.shape == (2, 3) and param.dtype == np.float32 and param.size == 6
    assert arrival.calls == 0
    np.testing.assert_array_equal(read(param), 2)
    np.testing.assert_array_equal(read(param), 2)
    assert arrival.calls == 1


def test_several_wait_for_one_arrival():
    x = np.zeros((2, 3), "f")
    params = [renga.Parameter(row) for row in x]
    arrival = Arrival(x)
    _core.await_arrays(params, arrival)
    for param in params:
        np.testing.assert_array_equal(param.array, 2)
    assert arrival.calls == 1


def test_a_write_comes_after_the_arrival():
    param, _ = awaited()
    param.array[0] = 5
    np.testing.assert_array_equal(param.array, [[5] * 3, [2] * 3])


def test_an_error_comes_with_each_read():
    param, arrival = awaited(error=TimeoutError("not there"))
    for _ in range(2):
        with pytest.raises(TimeoutError, match="not there"):
            F.sum(param)
    assert arrival.calls == 2


def test_threads_wait_for_one_arrival():
    x = np.zeros(3, "f")
    param, begun, goes_on = renga.Parameter(x), threading.Event(), threading.Event()

    def wait():
        begun.set()
        goes_on.wait()
        x[...] = 2

    _core.await_arrays([param], wait)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(F.sum(param).array))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    begun.wait()
    goes_on.set()
    for thread in threads:
        thread.join()
    assert results == [6, 6, 6]


def test_packed_weights_are_those_that_have_arrived():
    x = np.random.default_rng(0).normal(0, 1, (1, 32, 6, 6)).astype("f")
    link = renga.links.Convolution2D(32, 64, 3, pad=1)
    memory = np.ones_like(link.W.array)
    link.W.array = _core.own_view(memory)
    with renga.no_backprop_mode(), renga.using_config("train", False):
        first = [link(x).array for _ in range(3)][-1]
        _core.await_arrays([link.W], lambda: memory.fill(2))
        for _ in range(3):
            np.testing.assert_allclose(link(x).array, 2 * first, rtol=1e-5)


@pytest.mark.parametrize(
    "refer",
    [
        lambda param: param.array,
        lambda param: param.array[1:],
        lambda param: param.array.T,
        lambda param: memoryview(param.array),
        lambda param: F.reshape(param, (6,)),
        lambda param: renga.Variable(param.array[0]),
    ],
)
def test_references_to_a_part_of_memory_are_seen(refer):
    memory = np.zeros((4, 3), "f")
    param, other = renga.Parameter(0, (2, 3)), renga.Parameter(0, (2, 3))
    param.array, other.array = _core.own_view(memory[:2]), _core.own_view(memory[2:])
    assert param.owns_array and other.owns_array
    memory[...] = 3
    reference = refer(param)
    assert not param.owns_array and other.owns_array
    np.testing.assert_array_equal(param.array, 3)
    del reference
    assert param.owns_array
