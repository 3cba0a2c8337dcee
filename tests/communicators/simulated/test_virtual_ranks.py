"""Turns of virtual ranks: determinism, errors, deadlocks, random generators."""

import random
import signal
import threading
import traceback

import numpy as np
import pytest

import renga
from renga.communicators import RankFailed, simulated
from renga.communicators.simulated import Deadlock, Machine

SLOW = Machine(latency=1e-3, bandwidth=1e6)


def run(act, ranks, machine=SLOW):
    return simulated.run(act, ranks, machine, lambda rank, task: task)


def gossip(comm):
    """Random computations, and messages that each rank sends to random others."""
    x = np.random.rand(3)
    for step in range(6):
        comm.advance(np.random.rand() * 0.01 * (1 + comm.rank % 3))
        partners = np.random.RandomState(step).permutation(comm.size)
        place = int(np.flatnonzero(partners == comm.rank)[0])
        other = int(partners[place ^ 1])
        comm.send(x, other, step, wait=False)
        x = (x + comm.recv(other, step)) / 2
    return x


def test_two_runs_are_equal():
    outcomes = []
    for seed in (0, 0, 1):
        np.random.seed(seed)
        outcomes.append(run(gossip, 16))
    first, second, other = outcomes
    np.testing.assert_array_equal(first.results, second.results)
    assert first.seconds == second.seconds and first.traffic == second.traffic
    assert other.seconds != first.seconds


def test_one_rank_runs_at_a_time():
    running, most = [], []

    def act(comm):
        for _ in range(20):
            running.append(comm.rank)
            most.append(len(running))
            np.random.rand(1000).sort()
            running.remove(comm.rank)
            comm.barrier()

    run(act, 8)
    assert max(most) == 1 and len(most) == 160


@pytest.mark.parametrize("draws", [1, 2, 700])
def test_each_rank_has_the_global_generators_of_a_process(draws):
    def act(comm):
        np.random.seed(comm.rank)
        random.seed(comm.rank)
        drawn = []
        for _ in range(4):
            drawn.append([np.random.randn(draws), np.random.rand(draws)])
            drawn.append([[random.gauss(0, 1)], [random.random()]])
            comm.barrier()
        return drawn

    for rank, drawn in enumerate(run(act, 3).results):
        of_numpy, of_python = np.random.RandomState(rank), random.Random(rank)
        for normal, uniform in zip(drawn[::2], drawn[1::2]):
            np.testing.assert_array_equal(
                normal, [of_numpy.randn(draws), of_numpy.rand(draws)]
            )
            assert uniform == [[of_python.gauss(0, 1)], [of_python.random()]]


def test_generators_are_seeded_by_the_callers_which_go_on():
    def act(comm):
        np.random.rand(5)
        return np.random.rand(), random.random()

    expected = np.random.RandomState(4)
    np.random.seed(4)
    random.seed(4)
    results = run(act, 3).results
    assert len({value for pair in results for value in pair}) == 6
    expected.randint(2**32, size=3, dtype=np.uint64)
    assert np.random.rand() == expected.rand()
    assert random.random() == random.Random(4).random()
    np.random.seed(4)
    assert run(act, 3).results == results


def test_another_kind_of_bit_generator_stays_with_its_rank():
    def act(comm):
        if comm.rank == 0:
            np.random.mtrand.set_bit_generator(np.random.PCG64(8))
        drawn = [np.random.randn() for _ in range(3) if comm.barrier() is None]
        return drawn, type(np.random.mtrand.get_bit_generator()).__name__

    (first, kind), (_, other) = run(act, 2).results
    expected = np.random.RandomState(np.random.PCG64(8))
    assert first == [expected.randn() for _ in range(3)]
    assert (kind, other) == ("PCG64", "MT19937")
    assert type(np.random.mtrand.get_bit_generator()) is np.random.MT19937


def test_each_rank_has_its_configuration():
    def act(comm):
        renga.config.train = comm.rank == 1
        with renga.using_config("dtype", ["f2", "f4", "f8"][comm.rank]):
            comm.barrier()
            return renga.config.train, renga.config.dtype

    assert run(act, 3).results == [(False, "f2"), (True, "f4"), (False, "f8")]


def test_an_exception_ends_all_ranks_and_is_raised_with_its_rank():
    heard = []

    def act(comm):
        half = comm.split(comm.rank % 2, 0)
        if comm.rank == 2:
            raise KeyError("lost")
        try:
            half.recv(1 - half.rank)
        except RankFailed as error:
            heard.append(str(error))
            with pytest.raises(RankFailed):  # so does every later call
                comm.barrier()
            raise

    before = set(threading.enumerate())
    with pytest.raises(KeyError, match="rank 2: 'lost'") as raised:
        run(act, 4)
    assert heard == ["rank 2 failed: KeyError: 'lost'"] * 3
    assert raised.value.__cause__.args == ("lost",)
    cause = raised.value.__cause__
    lines = traceback.format_exception(type(cause), cause, cause.__traceback__)
    assert 'raise KeyError("lost")' in "".join(lines)
    assert set(threading.enumerate()) <= before


def test_a_deadlock_is_raised_with_what_each_rank_waits_for():
    def act(comm):
        if comm.rank == 0:
            comm.recv(1, tag=5)
        elif comm.rank == 1:
            comm.advance(0.5)
            comm.all_reduce(np.ones(3))
        elif comm.rank == 2:
            comm.send(np.zeros(100_000), 0, tag=6)

    before = set(threading.enumerate())
    with pytest.raises(Deadlock) as raised:
        run(act, 4)
    lines = str(raised.value).splitlines()
    assert lines[0] == "simulated: no rank can go on:"
    assert lines[1].startswith("  rank 0 at 0 s waits at ")
    assert lines[1].endswith(" in act for recv from rank 1 with tag 5")
    assert "test_virtual_ranks.py:" in lines[1]
    assert lines[2].startswith("  rank 1 at 0.5 s waits at ")
    assert lines[2].endswith(
        "for all_reduce sum float64 (3,), not called by rank 0, 2, 3"
    )
    assert lines[3].endswith("for send to rank 0 with tag 6")
    assert lines[4] == "  rank 3 at 0 s has returned"
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("size, ends", [(8000, True), (9000, False)])
def test_only_long_messages_wait_for_their_receive(size, ends):
    """As between real ranks: two that send to each other first may be stuck."""

    def act(comm):
        comm.send(np.zeros(size), 1 - comm.rank)
        return comm.recv(1 - comm.rank).size

    if ends:
        assert run(act, 2).results == [size, size]
    else:
        with pytest.raises(Deadlock, match="send to rank 1 .*\n.*send to rank 0"):
            run(act, 2)


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("pollers", [1, 2])
def test_endless_tests_are_a_deadlock(monkeypatch, measured, pollers):
    monkeypatch.setattr(
        "renga.communicators.simulated.virtual.scheduler._MAX_TESTS", 1000
    )

    def act(comm):
        if comm.rank < pollers:
            work = comm.recv((comm.rank + 1) % 3, out=np.ones(1), wait=False)
            while not work.test():
                pass
        comm.barrier()

    with pytest.raises(Deadlock):
        simulated.run(act, 3, SLOW, None if measured else lambda rank, task: task)


def test_abort_ends_all_ranks():
    def act(comm):
        if comm.rank == 0:
            comm.abort(3)
        comm.barrier()

    with pytest.raises(RankFailed, match="rank 0 aborted with code 3"):
        run(act, 2)


def test_another_thread_may_not_communicate():
    def act(comm):
        errors = []

        def call():
            try:
                comm.barrier()
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        return errors

    for rank, errors in enumerate(run(act, 2).results):
        assert f"expected the thread of virtual rank {rank}, got another" in errors[0]


def test_ranks_end_if_not_all_can_be_started(monkeypatch):
    start, started = threading.Thread.start, []

    def start_three(thread):
        started.append(thread)
        if len(started) > 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_three)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run(lambda comm: comm.barrier(), 5)
    for thread in started[:3]:
        thread.join(20)
    assert set(threading.enumerate()) <= before


def test_runs_can_be_nested():
    def act(comm):
        inner = run(lambda part: part.allreduce_obj(part.rank), comm.rank + 1).results
        return comm.allgather_obj(inner)

    assert run(act, 3).results == [[[0], [1, 1], [3, 3, 3]]] * 3


@pytest.fixture
def interruptible():
    # Whoever runs in the background was told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# A signal to another thread does not interrupt the wait of the main thread, which
# handles it.
@pytest.mark.parametrize("thread", [threading.main_thread, threading.current_thread])
def test_keyboard_interrupt_ends_the_ranks(thread, interruptible):
    heard = []

    def act(comm):
        if comm.rank == 0:
            comm.recv_obj(1)
            signal.pthread_kill(thread().ident, signal.SIGINT)
            while True:
                comm.send_obj("x", 0)
                comm.recv_obj(0)
        try:
            comm.send_obj("here", 0)
            comm.barrier()
        except RankFailed as error:
            heard.append(str(error))
            raise

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        simulated.run(act, 2)
    assert heard == ["the caller was interrupted: KeyboardInterrupt"]
    assert set(threading.enumerate()) <= before


def test_keyboard_interrupt_while_the_ranks_end(interruptible):
    def act(comm):
        if comm.rank == 1:  # the last one
            signal.raise_signal(signal.SIGINT)

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        simulated.run(act, 2)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    "ranks, machine, message",
    [(0, SLOW, "at least one rank, got 0"), (6, Machine(intra_size=4), "evenly")],
)
def test_invalid_numbers_of_ranks_are_refused(ranks, machine, message):
    with pytest.raises(ValueError, match=message):
        run(lambda comm: None, ranks, machine)
