"""Invalid arguments, and calls in the wrong order, thread or state."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from renga.communicators import ANY_SOURCE, RankFailed, create_communicator, local
from renga.utils.type_check import InvalidType

BY_ROOT = {
    "bcast": lambda comm, root: comm.bcast(np.ones(2), root=root),
    "bcast_obj": lambda comm, root: comm.bcast_obj("a", root=root),
    "broadcast": lambda comm, root: comm.broadcast(np.ones(2), root),
    "gather": lambda comm, root: comm.gather(np.ones(2), root),
    "gather_obj": lambda comm, root: comm.gather_obj("a", root),
    "scatter": lambda comm, root: comm.scatter([np.ones(2)] * comm.size, root),
    "scatter_obj": lambda comm, root: comm.scatter_obj(["a"] * comm.size, root),
    "send": lambda comm, root: comm.send(np.ones(2), root),
    "send_obj": lambda comm, root: comm.send_obj("a", root),
    "recv": lambda comm, root: comm.recv(root),
    "recv into": lambda comm, root: comm.recv(root, out=np.empty(2)),
    "recv_obj": lambda comm, root: comm.recv_obj(root),
}


def test_ranks_out_of_range_are_refused(ranks):
    def act(comm):
        for name, call in BY_ROOT.items():
            any_source = ANY_SOURCE if "recv" in name else None
            for rank in {-1, comm.size, 2**31, 2**40, -(2**31)} - {any_source}:
                text = rf"rank in \[0, {comm.size}\), got"
                with pytest.raises(ValueError, match=text):
                    call(comm, rank)
            is_message = name.startswith(("send", "recv"))
            for rank in (None, 0.0, "0"):
                text = None if is_message else f"^{name}: expected a rank, got {rank!r}"
                with pytest.raises(TypeError, match=text):
                    call(comm, rank)
        return float(comm.all_reduce(np.ones(1))[0])

    results = ranks(act)
    assert results == [len(results)] * len(results)


NO_NUMBERS = {
    "text": ("a", "expected an array of real numbers or bools, got dtype <U1"),
    "none": (None, "expected an array of real numbers or bools, got dtype object"),
    "objects": (np.array([{}, 1]), "real numbers or bools, got dtype object"),
    "a ragged list": ([[1, 2], [3]], "got <class 'list'> of rows of different lengths"),
}


def refuse_no_numbers(comm, given, x, text):
    rows = np.array([x] * comm.size, object) if given != "text" else [x] * comm.size
    for name, operand in (("all_reduce", [x]), ("all_gather", x)):
        with pytest.raises((TypeError, ValueError), match=f"^{name}: .*{text}"):
            getattr(comm, name)(operand)
    for name in ("reduce_scatter", "all_to_all"):
        with pytest.raises(TypeError, match=f"^{name}: .* got dtype "):
            getattr(comm, name)(rows)
    with pytest.raises((TypeError, InvalidType), match="^broadcast: expected an? "):
        comm.broadcast(x)


def test_operands_that_are_no_arrays_of_numbers_are_refused_by_name(ranks):
    def act(comm):
        for given, (x, text) in NO_NUMBERS.items():
            refuse_no_numbers(comm, given, x, text)
        return float(comm.all_reduce(np.ones(1))[0])

    results = ranks(act)
    assert results == [len(results)] * len(results)


@pytest.mark.parametrize("x", [None, np.array([{}, 1]), [[1, 2], [3]]], ids=type)
def test_operands_of_chainermn_methods_are_refused_by_name(ranks, x):
    def act(comm):
        calls = {
            "bcast": lambda: comm.bcast(x, root=comm.rank),
            "gather": lambda: comm.gather(x),
            "allgather": lambda: comm.allgather(x),
            "alltoall": lambda: comm.alltoall([x] * comm.size),
            "scatter": lambda: comm.scatter([x] * comm.size, root=comm.rank),
        }
        for name, call in calls.items():
            if name == "gather" and comm.rank != 0 and comm.size > 1:
                continue
            with pytest.raises((TypeError, ValueError), match=f"^{name}: expected an "):
                call()
        for name in ("alltoall", "scatter", "scatter_obj"):
            root = {} if name == "alltoall" else {"root": comm.rank}
            with pytest.raises(TypeError, match=f"^{name}: expected {comm.size} "):
                getattr(comm, name)(None, **root)
        return float(comm.all_reduce(np.ones(1))[0])

    results = ranks(act)
    assert results == [len(results)] * len(results)


def test_options_of_a_reduction_are_refused_by_name(ranks):
    def act(comm):
        for options in ({"op": None}, {"op": 3}, {"dtype": [1]}, {"dtype": "text"}):
            with pytest.raises((TypeError, ValueError), match="^all_reduce: expected "):
                comm.all_reduce(np.ones(2), **options)
        return float(comm.all_reduce(np.ones(1))[0])

    results = ranks(act)
    assert results == [len(results)] * len(results)


def test_tags_out_of_range_are_refused(ranks):
    def act(comm):
        for call in (
            lambda tag: comm.send(np.ones(2), 0, tag),
            lambda tag: comm.send_obj("a", 0, tag),
            lambda tag: comm.recv(0, tag),
            lambda tag: comm.recv(0, tag, out=np.empty(2)),
            lambda tag: comm.recv_obj(0, tag),
        ):
            for tag in (-2, -(2**40), 2**31, 2**63 - 1):
                text = r"expected a tag in \[0, \d+\], got"
                with pytest.raises(ValueError, match=text):
                    call(tag)

    ranks(act)


@pytest.mark.parametrize("tag", [0, 2**31 - 1])
def test_the_least_and_the_greatest_tag_are_sent(ranks, tag):
    def act(comm):
        work = comm.send(np.full(2, comm.rank), (comm.rank + 1) % comm.size, tag, False)
        left = (comm.rank - 1) % comm.size
        np.testing.assert_array_equal(comm.recv(left, tag), np.full(2, left))
        work.wait()

    ranks(act)


@pytest.mark.parametrize("size", [3, 300_000])
def test_message_to_own_rank(ranks, size):
    def act(comm):
        x = np.full(size, float(comm.rank))
        comm.send(x, comm.rank, 5)
        x[:] = -1  # what was sent is what it was then
        comm.send_obj({"rank": comm.rank}, comm.rank, 5)
        return comm.recv(comm.rank, 5)[-1], comm.recv_obj(comm.rank, 5)

    for rank, (last, obj) in enumerate(ranks(act)):
        assert last == rank and obj == {"rank": rank}


def test_invalid_timeouts_are_refused(ranks):
    def act(comm):
        work = comm.all_reduce(np.ones(3), wait=False)
        for timeout in (-1, -0.5, float("nan")):
            with pytest.raises(ValueError, match="time-out of 0 s or more"):
                work.wait(timeout)
        return work.wait(float("inf"))[0], work.wait()[0], work.wait(1)[0]

    results = ranks(act)
    assert results == [(len(results),) * 3] * len(results)


def test_timeout_of_zero_does_not_wait():
    may_come = threading.Event()

    def act(comm):
        if comm.rank == 1:
            may_come.wait()
            return comm.all_reduce(np.ones(3))[0]
        work = comm.all_reduce(np.ones(3), wait=False)
        with pytest.raises(TimeoutError):
            work.wait(0)
        may_come.set()
        return work.wait()[0]

    assert local.run(act, ranks=2) == [2, 2]


def test_wrong_counts(ranks):
    def act(comm):
        few = np.ones((comm.size + 1, 2))
        for call in (
            lambda: comm.all_to_all(few),
            lambda: comm.reduce_scatter(few),
            lambda: comm.all_to_all(np.ones(())),
            lambda: comm.reduce_scatter(np.float64(3)),
            lambda: comm.alltoall(list(few)),
            lambda: comm.all_reduce([few], out=[few, few]),
            lambda: comm.window(-1),
            lambda: comm.window((-2, -2)),
            lambda: comm.window((2**40, 2**40)),
            lambda: comm.all_reduce([np.ones(2), np.ones(2, "f4")]),
            lambda: comm.all_reduce(np.ones(2, "M8[s]")),
            lambda: comm.all_reduce(np.array([object()])),
            lambda: comm.window(3, object),
        ):
            with pytest.raises(Exception) as raised:
                call()
            assert raised.type.__name__ in ("ValueError", "TypeError", "InvalidType")
        return float(comm.all_reduce(np.ones(1))[0])

    results = ranks(act)
    assert results == [len(results)] * len(results)


def test_split_takes_integers_of_32_bits(ranks):
    least, most = -(2**31), 2**31 - 1

    def act(comm):
        for color in (least - 1, most + 1):
            with pytest.raises(ValueError, match="split: expected color as a 32-bit"):
                comm.split(color, 0)
        for key in (least - 1, most + 1):
            with pytest.raises(ValueError, match="split: expected key as a 32-bit"):
                comm.split(0, key)
        with pytest.raises(TypeError, match="split: expected color as an integer"):
            comm.split(0.5, 0)
        with pytest.raises(TypeError, match="split: expected key as an integer"):
            comm.split(0, None)
        first, last = comm.rank == 0, comm.rank == comm.size - 1
        by_color = comm.split(least if first else most, 0)
        by_key = comm.split(0, most if first else least if last else comm.rank)
        return by_color.allgather_obj(comm.rank), by_key.allgather_obj(comm.rank)

    size = len(results := ranks(act))
    others = list(range(1, size))
    for rank, (of_color, all_ranks) in enumerate(results):
        assert of_color == (others if rank else [0])
        assert all_ranks == [*others[-1:], *others[:-1], 0]


def test_lists_are_arrays_too(ranks):
    def act(comm):
        rows = [[float(comm.rank)] * 2] * comm.size
        return comm.all_to_all(rows)[:, 0], comm.reduce_scatter(rows)

    results = ranks(act)
    for exchanged, total in results:
        np.testing.assert_array_equal(exchanged, range(len(results)))
        np.testing.assert_array_equal(total, sum(range(len(results))))


@pytest.mark.parametrize("name", ["allgather_obj", "bcast_obj", "send_obj"])
def test_an_object_that_cannot_be_pickled(ranks, name):
    def act(comm):
        bad = threading.Lock()
        if comm.rank == 0:
            with pytest.raises(TypeError, match="pickle"):
                if name == "send_obj":
                    comm.send_obj(bad, comm.size - 1)
                else:
                    getattr(comm, name)(bad)
        return comm.allgather_obj(comm.rank)

    results = ranks(act)
    assert results == [list(range(len(results)))] * len(results)


def test_calls_in_different_order_raise_on_all_ranks(ranks):
    def act(comm):
        if comm.size == 1:
            return
        first, second = lambda: comm.all_reduce(np.ones(2)), comm.barrier
        with pytest.raises(Exception, match="expected the same call on every rank"):
            (first if comm.rank else second)()
        with pytest.raises(Exception, match="expected the same call on every rank"):
            (second if comm.rank else first)()

    ranks(act)


def test_calls_after_finalize_raise():
    def act(comm):
        work = comm.all_reduce(np.ones(3), wait=False)
        comm.finalize()
        comm.finalize()
        for call in (
            lambda: comm.all_reduce(np.ones(2)),
            lambda: comm.bcast_obj(1),
            lambda: comm.send(np.ones(2), 0),
            lambda: comm.recv(0),
            lambda: comm.split(0, 0),
            comm.barrier,
        ):
            with pytest.raises(RuntimeError, match="ended by finalize"):
                call()
        return work.wait()[0], comm.rank

    assert local.run(act, ranks=2) == [(2, 0), (2, 1)]


def test_work_outlives_its_communicator():
    comm = create_communicator("local")
    work = comm.all_reduce(np.ones(3), wait=False)
    del comm
    gc.collect()
    assert work.wait().tolist() == [1, 1, 1]


def test_work_completes_without_wait(ranks):
    def act(comm):
        y = np.zeros(100_000)
        comm.all_reduce(np.ones(100_000), out=y, wait=False)
        comm.recv((comm.rank - 1) % comm.size, 3, out=np.empty(50_000), wait=False)
        gc.collect()
        comm.send(np.ones(50_000), (comm.rank + 1) % comm.size, 4, wait=False)
        gc.collect()
        received = comm.recv((comm.rank - 1) % comm.size, 4)
        comm.barrier()
        return y[-1], received[-1]

    results = ranks(act)
    assert results == [(len(results), 1)] * len(results)


def test_arrays_live_until_a_dropped_work_is_complete():
    may_come = threading.Event()

    def act(comm):
        if comm.rank == 1:
            may_come.wait()
            return comm.all_reduce(np.ones(1000))[0]
        x = np.ones(1000)
        alive = weakref.ref(x)
        comm.all_reduce(x, out=x, wait=False)
        del x
        gc.collect()
        assert alive() is not None
        may_come.set()
        comm_over = comm.finalize  # waits for what is under way
        comm_over()
        return 2.0

    assert local.run(act, ranks=2) == [2.0, 2.0]


@pytest.mark.parametrize("shared_memory", [True, False])
def test_collectives_of_two_threads_at_once_raise(shared_memory):
    def act(comm):
        if comm.rank == 1:
            comm.recv_obj(0, 0)  # rank 0 waits in a barrier until then
            comm.barrier()
            return "in time"
        inside = threading.Thread(target=comm.barrier)
        inside.start()
        time.sleep(0.3)  # until the other thread is in its barrier
        message = "all_reduce: another thread is in a collective of this communicator"
        for x in (np.ones(3), [np.ones(3)]):
            for wait in (True, False):
                with pytest.raises(RuntimeError, match=message):
                    comm.all_reduce(x, out=x, wait=wait)
        comm.send_obj("go on", 1)  # messages may go meanwhile
        inside.join()
        return "in time"

    assert local.run(act, ranks=2, shared_memory=shared_memory) == ["in time"] * 2


def test_messages_from_several_threads(ranks_with_threads):
    def act(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        got = [0] * 4

        def play(tag):
            for i in range(20):
                comm.send(np.full(5000, tag * 100.0 + i), right, tag, wait=False)
                got[tag] += int(comm.recv(left, tag)[0] == tag * 100.0 + i)

        threads = [threading.Thread(target=play, args=(tag,)) for tag in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        comm.barrier()
        return got

    assert all(got == [20] * 4 for got in ranks_with_threads(act))


def test_send_works_after_a_failed_receive():
    def act(comm):
        if comm.rank == 1:
            comm.recv_obj(0, 0)
            raise ValueError("no more")
        comm.send(np.ones(100_000), 1, 7, wait=False)
        comm.send_obj("go", 1)
        with pytest.raises(RankFailed):
            comm.recv_obj(1, 0)
        raise OSError("done")

    with pytest.raises((ValueError, OSError)):
        local.run(act, ranks=2)
