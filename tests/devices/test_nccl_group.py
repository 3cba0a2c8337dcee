"""Collectives of NCCL on the two devices of the stand-in, ranks as threads."""

from __future__ import annotations

import ctypes
import pathlib
import sys
import threading

import numpy
import pytest

from renga import _core
from renga.backends import cuda

native = pytest.importorskip("renga._nccl_standin", reason="RENGA_CUDA_STANDIN is off")
pytestmark = pytest.mark.skipif(
    getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin",
    reason="needs the environment variable RENGA_CUDA_STANDIN",
)
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
KINDS = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]


def run_on_two(body, timeout=20.0):
    """What body(group, rank) returns or raises on each of two ranks."""
    cuda.load_plugin()
    unique_id, results = native.create_unique_id(), [None, None]

    def run(rank):
        try:
            group = native.NcclGroup(unique_id, rank, 2, rank, timeout)
            results[rank] = body(group, rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, TimeoutError):
            raise result
    return results


def placed(x, rank):
    variable = _core.Variable(numpy.ascontiguousarray(x), requires_grad=False)
    variable._to_device(f"cuda:{rank}")
    return variable


def address(variable):
    return variable.__cuda_array_interface__["data"][0]


def operands(dtype):
    rng = numpy.random.RandomState(0)
    return [rng.uniform(1, 9, (4, 5)).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", KINDS)
def test_all_reduce(dtype, op):
    xs = operands(dtype)

    def body(group, rank):
        x = placed(xs[rank], rank)
        group.all_reduce(address(x), address(x), 20, dtype, op).wait(0)
        return x.array.get()

    wide = numpy.stack(xs).astype("d")
    expected = getattr(wide, op)(0)
    if op == "mean" and numpy.dtype(dtype).kind in "iu":
        expected = numpy.trunc(expected)
    for got in run_on_two(body):
        numpy.testing.assert_array_equal(got, expected.astype(dtype))


def test_every_other_collective():
    xs = operands("float32")

    def body(group, rank):
        x, big = placed(xs[rank], rank), placed(numpy.zeros((2, 4, 5), "f"), rank)
        small, swapped = placed(numpy.zeros((2, 5), "f"), rank), placed(xs[0] * 0, rank)
        group.reduce_scatter(address(x), address(small), 20, "float32", "sum").wait(0)
        group.all_gather(address(x), address(big), 20, "float32").wait(0)
        group.all_to_all(address(x), address(swapped), 20, "float32").wait(0)
        group.broadcast(address(x), 20, "float32", 1).wait(0)
        return cuda.to_cpu([small.array, big.array, swapped.array, x.array])

    for rank, (small, big, swapped, broadcast) in enumerate(run_on_two(body)):
        rows = slice(2 * rank, 2 * rank + 2)
        numpy.testing.assert_array_equal(small, (xs[0] + xs[1])[rows])
        numpy.testing.assert_array_equal(big, numpy.stack(xs))
        expected = numpy.concatenate([xs[0][rows], xs[1][rows]])
        numpy.testing.assert_array_equal(swapped, expected)
        numpy.testing.assert_array_equal(broadcast, xs[1])


@pytest.mark.parametrize("seed", range(5))
def test_collectives_follow_what_computes_their_operands(seed):
    standin.cuda_standin_seed(ctypes.c_uint64(seed))
    x = numpy.arange(12, dtype="f").reshape(3, 4)

    def body(group, rank):
        a = placed(x + rank, rank)
        total = None
        for _ in range(4):
            y = _core.ops.multiply(a, a)
            work = group.all_reduce(address(y), address(y), 12, "float32", "sum")
            other = _core.ops.exp(a)  # beside the collective
            work.wait(0)
            y = _core.ops.add(y, a)
            total = y if total is None else _core.ops.add(total, y)
        return cuda.to_cpu([total.array, other.array])

    expected = x**2 + (x + 1) ** 2
    for rank, (total, other) in enumerate(run_on_two(body)):
        numpy.testing.assert_allclose(total, 4 * (expected + x + rank), rtol=1e-6)
        numpy.testing.assert_allclose(other, numpy.exp(x + rank), rtol=1e-5)


def test_a_rank_that_does_not_call_is_a_time_out():
    def body(group, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 0:
            group.all_reduce(address(x), address(x), 3, "float32", "sum").wait(0)
        return group  # lives until both ranks have ended

    error, _ = run_on_two(body, timeout=0.5)
    assert isinstance(error, TimeoutError)
    assert "all_reduce: not complete after 0.5" in str(error)
