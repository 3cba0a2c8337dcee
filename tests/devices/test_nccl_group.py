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


def run_on_two(body, timeout=20.0, share=True):
    """What body(group, rank) returns or raises on each of two ranks.

    The groups live until both have returned; without ``share``, body(groups, rank) gets
    its group in a list, from which it may remove it.
    """
    cuda.load_plugin()
    unique_id, results, groups = native.create_unique_id(), [None, None], []

    def run(rank):
        try:
            mine = [native.NcclGroup(unique_id, rank, 2, rank, timeout)]
            if share:
                groups.extend(mine)
            results[rank] = body(mine[0] if share else mine, rank)
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


def described(*variables):
    return [
        (x.__cuda_array_interface__["data"][0], x.size, x.dtype.name) for x in variables
    ]


def in_place(x, op="sum"):
    """Arguments of an all-reduce."""
    return "all_reduce", described(x), described(x), op


def operands(dtype):
    rng = numpy.random.RandomState(0)
    return [rng.uniform(1, 9, (4, 5)).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", KINDS)
def test_all_reduce(dtype, op):
    xs = operands(dtype)

    def body(group, rank):
        x = placed(xs[rank], rank)
        group.call(*in_place(x, op)).wait(0)
        return x.array.get()

    wide = numpy.stack(xs).astype("d")
    expected = getattr(wide, op)(0)
    if op == "mean" and numpy.dtype(dtype).kind in "iu":
        expected = numpy.trunc(expected)
    for got in run_on_two(body):
        numpy.testing.assert_array_equal(got, expected.astype(dtype))


def test_all_reduce_of_several_arrays():
    xs = operands("float32")

    def body(group, rank):
        whole = placed(xs[rank], rank)
        integers = placed(numpy.arange(3) + rank, rank)
        result = placed(numpy.zeros((4, 5), "f"), rank)
        empty = placed(numpy.zeros(0, "f"), rank)
        sent, received = (whole, empty, integers), (result, empty, integers)
        group.call("all_reduce", described(*sent), described(*received)).wait(0)
        return cuda.to_cpu([whole.array, result.array, integers.array])

    for rank, (whole, result, integers) in enumerate(run_on_two(body)):
        numpy.testing.assert_array_equal(whole, xs[rank])
        numpy.testing.assert_array_equal(result, xs[0] + xs[1])
        numpy.testing.assert_array_equal(integers, [1, 3, 5])


def test_every_other_collective():
    xs = operands("float32")

    def body(group, rank):
        x, big = placed(xs[rank], rank), placed(numpy.zeros((2, 4, 5), "f"), rank)
        small, swapped = placed(numpy.zeros((2, 5), "f"), rank), placed(xs[0] * 0, rank)
        for name, y in (
            ("reduce_scatter", small),
            ("all_gather", big),
            ("all_to_all", swapped),
        ):
            group.call(name, described(x), described(y)).wait(0)
        group.call("broadcast", described(x), described(x), root=1).wait(0)
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
            work = group.call(*in_place(y))
            other = _core.ops.exp(a)  # beside the collective
            work.wait(0)
            y = _core.ops.add(y, a)
            total = y if total is None else _core.ops.add(total, y)
        return cuda.to_cpu([total.array, other.array])

    expected = x**2 + (x + 1) ** 2
    for rank, (total, other) in enumerate(run_on_two(body)):
        numpy.testing.assert_allclose(total, 4 * (expected + x + rank), rtol=1e-6)
        numpy.testing.assert_allclose(other, numpy.exp(x + rank), rtol=1e-5)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: cuda.to_cpu(x.array),
        lambda x: _core.ops.sum(x).item(),
        lambda x: _core.synchronize("cuda:0"),
    ],
)
def test_a_rank_that_does_not_call_is_a_time_out_where_a_result_is_read(read):
    texts = []

    def body(group, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 0:
            arguments = in_place(x)
            group.call(*arguments).wait(0)
            x = _core.ops.exp(x)
            for see in (
                lambda: read(x),
                group.throw_failure,
                lambda: group.call(*arguments),
            ):
                with pytest.raises(TimeoutError) as raised:
                    see()
                texts.append(str(raised.value))
            read(x)  # once
        return rank  # the groups live until both have ended

    assert run_on_two(body, timeout=0.5) == [0, 1]
    assert len(texts) == 3
    for text in texts:
        assert text.startswith("all_reduce: not complete after 0.5")


def test_a_wait_with_a_time_out_waits_on_the_host():
    def body(group, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 0:
            work = group.call(*in_place(x))
            work.wait(0.1)
        return group

    error, _ = run_on_two(body)
    assert isinstance(error, TimeoutError)
    assert "all_reduce: not complete after 0.1" in str(error)


def test_a_rank_that_is_gone_is_an_error_where_a_result_is_read():
    started = threading.Event()

    def body(groups, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 1:
            started.wait()
            groups.clear()
            return None
        groups[0].call(*in_place(x)).wait(0)
        started.set()
        with pytest.raises(RuntimeError, match="all_reduce: remote process exited"):
            cuda.to_cpu(x.array)
        return True

    assert run_on_two(body, share=False)[0]


def test_a_rank_that_ends_completes_its_collectives():
    x = numpy.arange(3, dtype="f")

    def body(groups, rank):
        y = placed(x + rank, rank)
        for _ in range(3):
            groups[0].call(*in_place(y)).wait(0)
        groups.clear()
        return cuda.to_cpu(y.array)

    for y in run_on_two(body, share=False):
        numpy.testing.assert_array_equal(y, 4 * (2 * x + 1))


def test_collectives_make_the_host_wait_for_nothing():
    barrier = threading.Barrier(2)

    def body(group, rank):
        x = placed(numpy.ones(3, "f"), rank)
        waits = []
        for _ in range(4):
            barrier.wait()
            waits.append(standin.cuda_standin_waits())
            barrier.wait()
            for _ in range(3):
                group.call(*in_place(x, op="mean")).wait(0)
                x = _core.ops.add(x, x)
        return waits, cuda.to_cpu(x.array)

    for waits, y in run_on_two(body):
        assert waits[1:] == waits[1:2] * 3  # the first steps allocate
        numpy.testing.assert_array_equal(y, numpy.full(3, 2.0**12))
