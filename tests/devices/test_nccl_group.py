"""Collectives of NCCL on the two devices of the stand-in, ranks as threads."""

from __future__ import annotations

import ctypes
import pathlib
import sys
import threading

import numpy
import pytest

import renga.functions as F
from renga import _communicators, _core
from renga.backends import cuda
from renga.utils.type_check import InvalidType

native = pytest.importorskip("renga._nccl_standin", reason="RENGA_CUDA_STANDIN is off")
pytestmark = pytest.mark.skipif(
    getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin",
    reason="needs the environment variable RENGA_CUDA_STANDIN",
)
standin = ctypes.CDLL(str(pathlib.Path(_core.__file__).parent / "libcuda_standin.so"))
KINDS = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]


def run_on_two(body, timeout=20.0, share=True):
    """What body(comm, rank) returns or raises on each of two ranks.

    The communicators live until both have returned; without ``share``, body(comms,
    rank) gets its own in a list, from which it may remove it.
    """
    cuda.load_plugin()
    unique_id, results, comms = native.create_unique_id(), [None, None], []
    ranks = _communicators.LocalGroup([0, 0], False, _communicators.Failure())

    def run(rank):
        try:
            transport = ranks.transport(rank)
            mine = [_communicators.Communicator(transport, timeout, False)]
            mine[0].connect_devices(unique_id, f"cuda:{rank}")
            if share:
                comms.extend(mine)
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
    variable.move_to(f"cuda:{rank}")
    return variable


def in_place(x, op="sum"):
    """Arguments of an all-reduce in the background."""
    return "all_reduce", [x], [x], op, "", None, False


def operands(dtype):
    rng = numpy.random.RandomState(0)
    return [rng.uniform(1, 9, (2, 10)).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", KINDS)
def test_all_reduce(dtype, op):
    xs = operands(dtype)

    def body(comm, rank):
        x = placed(xs[rank], rank)
        comm.call(*in_place(x, op)).wait(0)
        return x.array.get()

    wide = numpy.stack(xs).astype("d")
    expected = getattr(wide, op)(0)
    if op == "mean" and numpy.dtype(dtype).kind in "iu":
        with pytest.raises(InvalidType, match="expected a floating dtype for mean"):
            run_on_two(body)
        return
    for got in run_on_two(body):
        numpy.testing.assert_array_equal(got, expected.astype(dtype))


@pytest.mark.parametrize("communication_dtype", ["float16", "bfloat16"])
def test_all_reduce_in_another_dtype_of_arrays_that_are_not_contiguous(
    communication_dtype,
):
    xs = [numpy.arange(12, dtype="f").reshape(3, 4) + rank for rank in range(2)]

    def body(comm, rank):
        x, y = placed(xs[rank], rank), placed(numpy.zeros((4, 3), "f"), rank)
        operand, result = _core.ops.transpose(x, (1, 0)), y.array[::-1]
        arguments = [operand], [_core.Variable(result, requires_grad=False)]
        comm.call("all_reduce", *arguments, "sum", communication_dtype)
        return cuda.to_cpu(y.array)

    for got in run_on_two(body):
        numpy.testing.assert_array_equal(got[::-1], (xs[0] + xs[1]).T)


def test_all_gather_and_all_to_all_of_different_sizes():
    def body(comm, rank):
        mine = placed(numpy.arange(rank + 2) + 10 * rank, rank)
        ys = [placed(numpy.zeros(r + 2, "l"), rank) for r in range(2)]
        comm.call("all_gatherv", [mine], ys)
        sent = [None if rank else mine, mine]
        received = [placed(numpy.zeros(2, "l"), rank), None if rank == 0 else mine]
        comm.call("all_to_allv", sent, received)
        return cuda.to_cpu([*(y.array for y in ys), received[0].array])

    for first, second, third in run_on_two(body):
        assert first.tolist() == [0, 1] and second.tolist() == [10, 11, 12]
        assert third.tolist() == [0, 1]


def test_all_reduce_of_several_arrays():
    xs = operands("float32")

    def body(comm, rank):
        whole = placed(xs[rank], rank)
        short = placed(numpy.arange(3, dtype="f") + rank, rank)
        result = placed(numpy.zeros((2, 10), "f"), rank)
        empty = placed(numpy.zeros(0, "f"), rank)
        comm.call("all_reduce", [whole, empty, short], [result, empty, short])
        return cuda.to_cpu([whole.array, result.array, short.array])

    for rank, (whole, result, short) in enumerate(run_on_two(body)):
        numpy.testing.assert_array_equal(whole, xs[rank])
        numpy.testing.assert_array_equal(result, xs[0] + xs[1])
        numpy.testing.assert_array_equal(short, [1, 3, 5])


def test_every_other_collective():
    xs = operands("float32")

    def body(comm, rank):
        x, big = placed(xs[rank], rank), placed(numpy.zeros((2, 2, 10), "f"), rank)
        small, swapped = placed(numpy.zeros(10, "f"), rank), placed(xs[0] * 0, rank)
        for name, y in (
            ("reduce_scatter", small),
            ("all_gather", big),
            ("all_to_all", swapped),
        ):
            comm.call(name, [x], [y])
        comm.call("broadcast", *(([], [x]), ([x], []))[rank], root=1)
        return cuda.to_cpu([small.array, big.array, swapped.array, x.array])

    for rank, (small, big, swapped, broadcast) in enumerate(run_on_two(body)):
        numpy.testing.assert_array_equal(small, xs[0][rank] + xs[1][rank])
        numpy.testing.assert_array_equal(big, numpy.stack(xs))
        numpy.testing.assert_array_equal(swapped, [xs[0][rank], xs[1][rank]])
        numpy.testing.assert_array_equal(broadcast, xs[1])


@pytest.mark.parametrize("seed", range(5))
def test_collectives_follow_what_computes_their_operands(seed):
    standin.cuda_standin_seed(ctypes.c_uint64(seed))
    x = numpy.arange(12, dtype="f").reshape(3, 4)

    def body(comm, rank):
        a = placed(x + rank, rank)
        total = None
        for _ in range(4):
            y = _core.ops.multiply(a, a)
            work = comm.call(*in_place(y))
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

    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 0:
            arguments = in_place(x)
            comm.call(*arguments).wait(0)
            x = _core.ops.exp(x)
            for see in (
                lambda: read(x),
                comm.barrier,
                lambda: comm.call(*arguments),
            ):
                with pytest.raises(TimeoutError) as raised:
                    see()
                texts.append(str(raised.value))
            read(x)  # once
        return rank  # the communicators live until both have ended

    assert run_on_two(body, timeout=0.5) == [0, 1]
    assert len(texts) == 3
    for text in texts:
        assert text.startswith("all_reduce: not complete after 0.5")


def test_a_thread_of_another_device_drops_a_collective_that_runs():
    """What gets the memory of its arrays next comes after it."""
    for seed in range(8):
        standin.cuda_standin_seed(ctypes.c_uint64(seed))

        def body(comm, rank):
            x = placed(numpy.full(64, rank + 1, "f"), rank)
            y = placed(numpy.zeros(64, "f"), rank)
            running = [comm.call("all_reduce", [x], [y], "sum", "", None, False)]
            del x
            dropping = threading.Thread(target=running.clear)  # on device 0
            dropping.start()
            dropping.join()
            other = placed(numpy.zeros(64, "f"), rank)  # where x was
            _core.ops.add(other, other)
            comm.barrier()
            return cuda.to_cpu(y.array)

        for y in run_on_two(body):
            numpy.testing.assert_array_equal(y, numpy.full(64, 3))


def test_the_current_device_stays():
    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        comm.call(*in_place(x)).wait(0)
        current = ctypes.c_int()
        standin.cudaGetDevice(ctypes.byref(current))
        return current.value, cuda.to_cpu(x.array).tolist()

    assert run_on_two(body) == [(0, [2, 2, 2])] * 2


def test_collectives_are_not_recorded():
    """The communicator is as it was."""

    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        recording = cuda.load_plugin().Recording(rank)
        recording.begin()
        with pytest.raises(RuntimeError, match="all_reduce: .* a recorded graph"):
            comm.call(*in_place(x))
        recording.discard()
        comm.call(*in_place(x)).wait(0)
        return cuda.to_cpu(x.array).tolist()

    assert run_on_two(body) == [[2, 2, 2]] * 2


def test_a_rank_frees_memory_while_the_device_waits_for_another_one():
    has_begun = threading.Event()

    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 1:
            has_begun.wait()
            comm.call(*in_place(x)).wait(0)
        else:
            recording = cuda.load_plugin().Recording(0)
            recording.begin()
            _core.addresses([F.exp(x)])  # in memory of the recording
            recording.end()
            work = comm.call(*in_place(x))
            has_begun.set()
            del recording
            work.wait(0)
        return cuda.to_cpu(x.array).tolist()

    assert run_on_two(body) == [[2, 2, 2]] * 2


def test_a_wait_with_a_time_out_waits_on_the_host():
    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 0:
            work = comm.call(*in_place(x))
            work.wait(0.1)
        return comm

    error, _ = run_on_two(body)
    assert isinstance(error, TimeoutError)
    assert "all_reduce: not complete after 0.1" in str(error)


def test_a_rank_that_is_gone_is_an_error_where_a_result_is_read():
    started = threading.Event()

    def body(comms, rank):
        x = placed(numpy.ones(3, "f"), rank)
        if rank == 1:
            started.wait()
            comms.clear()
            return None
        comms[0].call(*in_place(x)).wait(0)
        started.set()
        with pytest.raises(RuntimeError, match="all_reduce: remote process exited"):
            cuda.to_cpu(x.array)
        return True

    assert run_on_two(body, share=False)[0]


def test_a_rank_that_ends_completes_its_collectives():
    x = numpy.arange(3, dtype="f")

    def body(comms, rank):
        y = placed(x + rank, rank)
        for _ in range(3):
            comms[0].call(*in_place(y)).wait(0)
        comms.clear()
        return cuda.to_cpu(y.array)

    for y in run_on_two(body, share=False):
        numpy.testing.assert_array_equal(y, 4 * (2 * x + 1))


def test_collectives_make_the_host_wait_for_nothing():
    barrier = threading.Barrier(2)

    def body(comm, rank):
        x = placed(numpy.ones(3, "f"), rank)
        waits = []
        for _ in range(4):
            barrier.wait()
            waits.append(standin.cuda_standin_waits())
            barrier.wait()
            for _ in range(3):
                comm.call(*in_place(x, op="mean")).wait(0)
                x = _core.ops.add(x, x)
        return waits, cuda.to_cpu(x.array)

    for waits, y in run_on_two(body):
        assert waits[1:] == waits[1:2] * 3  # the first steps allocate
        numpy.testing.assert_array_equal(y, numpy.full(3, 2.0**12))
