"""Collectives and messages in the background."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from renga.communicators import RankFailed, local


def test_blocking_collectives_wait_for_earlier_background_ones(ranks):
    def act(comm):
        x = np.full(100_000, comm.rank + 1, "float32")
        works = [comm.all_reduce(x * k, wait=False) for k in range(5)]
        together = comm.all_gather(np.array(comm.rank))  # overtakes none of them
        return [work.wait()[0] for work in works], together

    results = ranks(act)
    total = sum(range(1, len(results) + 1))
    for sums, together in results:
        assert sums == [total * k for k in range(5)]
        np.testing.assert_array_equal(together, range(len(results)))


def test_every_collective_can_run_in_the_background(ranks):
    def act(comm):
        x = np.arange(comm.size * 3.0).reshape(comm.size, 3) + comm.rank
        works = [
            comm.all_reduce(x, wait=False),
            comm.reduce_scatter(x, wait=False),
            comm.all_gather(x, wait=False),
            comm.all_to_all(x, wait=False),
            comm.broadcast(x.copy(), wait=False),
        ]
        now = [
            comm.all_reduce(x),
            comm.reduce_scatter(x),
            comm.all_gather(x),
            comm.all_to_all(x),
            comm.broadcast(x.copy()),
        ]
        return [work.wait() for work in works], now

    for later, now in ranks(act):
        for a, b in zip(later, now):
            np.testing.assert_array_equal(a, b)


def test_large_messages_in_both_directions_in_the_background(ranks):
    def act(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        received = np.empty(500_000)
        work = comm.recv(left, tag=1, out=received, wait=False)
        comm.send(np.full(500_000, float(comm.rank)), right, tag=1, wait=False)
        assert work.wait() is received
        assert work.test()
        comm.barrier()
        return received[-1]

    results = ranks(act)
    assert results == [(r - 1) % len(results) for r in range(len(results))]


def test_receiving_into_the_wrong_array_is_refused(ranks):
    def act(comm):
        if comm.size > 1 and comm.rank == 0:
            comm.send(np.ones(3), 1, tag=0)
        elif comm.rank == 1:
            with pytest.raises(TypeError, match=r"expected int64 \(3,\), got float64"):
                comm.recv(0, tag=0, out=np.empty(3, "int64"))
        with pytest.raises(ValueError, match="contiguous out"):
            comm.recv(0, tag=0, out=np.empty(6)[::2])
        with pytest.raises(ValueError, match="expected out"):
            comm.recv(0, tag=0, wait=False)

    ranks(act)


def test_wait_raises_an_error_of_the_background():
    def act(comm):
        if comm.rank == 1:
            raise OSError("disk on fire")
        work = comm.all_reduce(np.ones(3), wait=False)
        with pytest.raises(RankFailed, match="rank 1 failed: OSError: disk on fire"):
            work.wait()
        assert isinstance(work.error, RankFailed)
        with pytest.raises(RankFailed):
            work.test()

    with pytest.raises(OSError, match="rank 1: disk on fire"):
        local.run(act, ranks=2)


def test_wait_raises_after_its_own_timeout():
    may_come = threading.Event()

    def act(comm):
        if comm.rank == 1:
            may_come.wait()
            return comm.all_reduce(np.ones(3))
        work = comm.all_reduce(np.ones(3), wait=False)
        assert not work.test()
        assert work.error is None
        with pytest.raises(
            TimeoutError, match=r"all_reduce .*not complete after 0.05 s"
        ):
            work.wait(timeout=0.05)
        may_come.set()
        return work.wait()

    for y in local.run(act, ranks=2):
        np.testing.assert_array_equal(y, 2)


def test_wait_for_a_missing_message_times_out(monkeypatch):
    monkeypatch.setenv("RENGA_TIMEOUT", "0.2")
    given_up = threading.Event()

    def act(comm):
        if comm.rank == 1:
            given_up.wait()
            return
        work = comm.recv(1, out=np.empty(3), wait=False)
        with pytest.raises(TimeoutError, match="waited 0.2 s for rank 1"):
            work.wait()
        given_up.set()

    local.run(act, ranks=2)


def test_what_follows_a_communication_is_computed_once_when_it_is_waited_for(ranks):
    def act(comm):
        calls = []

        def add_one(total):
            calls.append(1)
            return total + 1

        first = comm.all_reduce(np.ones(3), wait=False)
        work = first.then(add_one).then(lambda y: 2 * y)
        assert not calls
        results = [work.wait(), work.wait()]
        assert work.test() and work.error is None
        return results, len(calls), first.wait()

    for results, calls, total in ranks(act):
        for y in results:
            np.testing.assert_array_equal(y, 2 * (total + 1))
        assert calls == 1


FORKED_WHILE_PENDING = """
import os
import signal
import threading
import numpy as np
from renga.communicators import local

forked = threading.Event()


def in_child(work):
    signal.alarm(60)
    for ask in work.test, work.wait:
        try:
            ask()
            return 1
        except RuntimeError as error:
            if "belongs to the process that has forked this one" not in str(error):
                return 2
    return 0


def act(comm):
    if comm.rank == 1:
        forked.wait()
        return comm.all_reduce(np.ones(3))
    work = comm.all_reduce(np.ones(3), wait=False)
    child = os.fork()
    if child == 0:
        os._exit(in_child(work))
    status = os.waitpid(child, 0)[1]
    forked.set()
    assert status == 0, status
    return work.wait()


for sums in local.run(act, ranks=2):
    np.testing.assert_array_equal(sums, 2)
"""


def test_a_forked_process_does_not_wait_for_a_collective_in_the_background():
    command = [sys.executable, "-c", FORKED_WHILE_PENDING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
