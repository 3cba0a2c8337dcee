"""Messages from any rank and with any tag: probes, and receives of what comes."""

import random
import time

import numpy as np
import pytest

from renga.communicators import (
    ANY_SOURCE,
    ANY_TAG,
    RankFailed,
    Status,
    create_communicator,
    local,
    simulated,
)


def test_every_message_is_received_once_in_the_order_of_its_source(several_ranks):
    """Rank 0 takes what comes; sizes are on both sides of those that are buffered."""
    sizes = (0, 3, 511, 8193, 60_000)

    def act(world):
        comm = world.split(0, world.rank)
        chance = random.Random(comm.rank)
        if comm.rank > 0:
            works = []
            for i in range(12):
                tag, size = i % 3, chance.choice(sizes)
                x = np.full(size + 1, 100.0 * comm.rank + i)
                works.append(comm.send(x, 0, tag, wait=False))
            for work in works:
                work.wait()
            return None
        received, status = [], Status()
        for _ in range(12 * (comm.size - 1)):
            x = comm.recv(ANY_SOURCE, ANY_TAG, status=status)
            assert (x == x[0]).all()
            received.append((status.Get_source(), status.Get_tag(), x[0]))
        assert comm.probe(timeout=0) is None
        return received

    received = several_ranks(act)[0]
    for rank in {source for source, _, _ in received}:
        for tag in range(3):
            numbers = [x for s, t, x in received if (s, t) == (rank, tag)]
            assert numbers == [100.0 * rank + i for i in range(tag, 12, 3)]


def test_a_tag_or_a_source_selects(several_ranks):
    def act(world):
        comm = world.split(0, world.rank)
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.send_obj(("first", comm.rank), right, 5)
        comm.send_obj(("second", comm.rank), right, 3)
        status = Status()
        selected = comm.recv_obj(ANY_SOURCE, 3, status=status)
        assert (status.source, status.tag) == (left, 3)
        # Without a tag, any tag is received, as in ChainerMN.
        other = comm.recv_obj(left, status=status)
        assert (status.source, status.tag) == (left, 5)
        # It is 0 where none is sent.
        comm.send_obj("third", right)
        comm.recv_obj(left, status=status)
        assert status.tag == 0
        comm.send(np.ones(1), right)
        comm.recv(left, ANY_TAG, status=status)
        assert status.tag == 0
        comm.barrier()
        return selected, other

    for rank, (selected, other) in enumerate(results := several_ranks(act)):
        left = (rank - 1) % len(results)
        assert selected == ("second", left) and other == ("first", left)


def test_mpi4pys_status_and_wildcards(several_ranks):
    MPI = pytest.importorskip("mpi4py.MPI", exc_type=ImportError)

    def act(world):
        comm = world.split(0, world.rank)
        comm.send_obj("a", (comm.rank + 1) % comm.size, 4)
        status = MPI.Status()
        assert comm.recv_obj(MPI.ANY_SOURCE, MPI.ANY_TAG, status) == "a"
        comm.barrier()
        return status.Get_source(), status.Get_tag()

    results = several_ranks(act)
    for rank, found in enumerate(results):
        assert found == ((rank - 1) % len(results), 4)


def test_a_posted_receive_takes_its_message_before_a_probe(several_ranks):
    def act(world):
        comm = world.split(0, world.rank)
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        out = np.empty(2)
        work = comm.recv(left, 1, out=out, wait=False)
        comm.barrier()
        comm.send(np.full(2, 1.0), right, 1, wait=False)
        comm.send(np.full(2, 2.0), right, 1, wait=False)
        found = comm.probe(tag=1)
        assert found == Status(left, 1)
        second = comm.recv(*vars(found).values())
        work.wait()
        comm.barrier()
        return out[0], second[0]

    assert set(several_ranks(act)) == {(1.0, 2.0)}


def test_a_probe_that_finds_nothing_ends(ranks):
    def act(world):
        comm = world.split(0, world.rank)
        assert comm.probe(timeout=0) is None
        assert comm.probe(0, 7, timeout=0.01) is None
        comm.barrier()
        for call, error in (
            (lambda: comm.probe(timeout=-1), ValueError),
            (lambda: comm.probe(comm.size), ValueError),
            (lambda: comm.probe(0, -2), ValueError),
            (lambda: comm.probe(0, "1"), TypeError),
        ):
            with pytest.raises(error):
                call()

    ranks(act)


def test_no_rank_sends(monkeypatch):
    monkeypatch.setenv("RENGA_TIMEOUT", "0.1")

    def act(comm):
        if comm.rank == 1:
            with pytest.raises(TimeoutError, match="1 waited 0.1 s for ranks 0, 2"):
                comm.recv_obj(ANY_SOURCE)

    local.run(act, ranks=3)


def test_a_failed_rank_ends_those_that_probe():
    def act(comm):
        if comm.rank == 0:
            raise ValueError("broken")
        with pytest.raises(RankFailed, match="rank 0 failed"):
            comm.probe()

    with pytest.raises(ValueError, match="rank 0: broken"):
        local.run(act, ranks=3)


def test_virtual_messages_come_in_the_order_of_their_arrival():
    """The probe sees a message that is sent after it began, and arrives first."""
    machine = simulated.Machine(latency=1.0, bandwidth=1e3)  # 8 bytes: 8 ms

    def act(comm):
        if comm.rank == 0:
            order = []
            for _ in range(3):
                found = comm.probe()
                order.append((found.source, found.tag, round(comm.clock, 6)))
                comm.recv(found.source, found.tag)
            return order
        comm.advance(3 - comm.rank)  # rank 2 sends at 1 s, rank 1 at 2 s
        comm.send(np.zeros(1000 if comm.rank == 2 else 1), 0, comm.rank, wait=False)
        if comm.rank == 1:
            comm.send(np.zeros(1), 0, 7, wait=False)

    # The link of rank 0 receives one message at a time: 10 s, then 11.008 and 12.016 s.
    order = simulated.run(act, 3, machine, lambda rank, task: task).results[0]
    assert order == [(2, 2, 10.0), (1, 1, 11.008), (1, 7, 12.016)]


@pytest.mark.parametrize("timeout", [0, 0.25])
def test_virtual_probes_with_a_time_limit(timeout):
    machine = simulated.Machine(latency=1.0)

    def act(comm):
        if comm.rank == 0:
            probes = 0
            while (found := comm.probe(timeout=timeout)) is None:
                probes += 1
                assert probes < 100
            return found.source, probes, comm.clock
        comm.send(np.zeros(0), 0, wait=False)

    source, probes, clock = simulated.run(act, 2, machine, lambda r, t: t).results[0]
    assert source == 1 and clock == pytest.approx(1.0)
    assert probes == 3 if timeout else probes >= 1


def test_virtual_ranks_that_wait_for_no_message_are_a_deadlock():
    with pytest.raises(simulated.Deadlock, match="recv from any rank with tag 3"):
        simulated.run(lambda comm: comm.recv(ANY_SOURCE, 3), 2)


def test_the_simulated_rank_receives_its_own():
    comm = create_communicator("simulated", size=4)
    comm.send_obj("x", 2, 9)
    assert comm.probe() == Status(0, 9)
    assert comm.recv_obj(ANY_SOURCE) == "x"
    assert comm.probe(timeout=0) is None
    with pytest.raises(RuntimeError, match="no message that matches"):
        comm.recv(ANY_SOURCE)


def test_many_senders_and_one_receiver_of_any(ranks_with_threads):
    """A server answers whoever asks, while the ranks reduce in the background."""

    def act(world):
        comm = world.split(0, world.rank)
        total, rounds = 0.0, 20
        begin = time.perf_counter()
        if comm.rank == 0:
            for _ in range(rounds * (comm.size - 1)):
                status = Status()
                total += comm.recv(ANY_SOURCE, 1, status=status)[0]
                comm.send(np.array([total]), status.source, 2)
        else:
            for i in range(rounds):
                comm.send(np.array([float(comm.rank * i)]), 0, 1)
                comm.recv(0, 2)
        assert time.perf_counter() - begin < 30
        comm.barrier()
        return total

    results = ranks_with_threads(act)
    assert results[0] == 190 * sum(range(len(results)))
