"""The times of virtual ranks, against times computed by hand.

On ``MACHINE`` a message of n thousand bytes takes 1 + n milliseconds.
"""

import dataclasses

import numpy as np
import pytest

from renga.communicators import simulated
from renga.communicators.simulated import Machine

MACHINE = Machine(latency=1e-3, bandwidth=1e6)
NODES = Machine(
    intra_size=2, latency=1e-3, bandwidth=1e6, node_latency=1e-4, node_bandwidth=1e7
)
MS = 1e-3


def kilobytes(n):
    return np.zeros(1000 * n, np.uint8)


def times(act, ranks, machine=MACHINE):
    """The results and the ranks' times in milliseconds."""
    outcome = simulated.run(act, ranks, machine, lambda rank, task: task * MS)
    return outcome.results, np.array(outcome.seconds) / MS


@pytest.mark.parametrize("machine, way", [(MACHINE, 3), (NODES, 0.3)])
def test_ping_pong(machine, way):
    def act(comm):
        for _ in range(5):
            if comm.rank == 0:
                comm.send(kilobytes(2), 1)
                comm.recv(1)
            else:
                comm.send(comm.recv(0), 0)

    np.testing.assert_allclose(times(act, 2, machine)[1], 5 * 2 * way)


@pytest.mark.parametrize("ranks", [2, 3, 8, 16])
def test_ring_all_gather(ranks):
    def act(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        blocks = [np.full(4000, comm.rank, np.uint8)]
        for _ in range(comm.size - 1):
            comm.send(blocks[-1], right, wait=False)
            blocks.append(comm.recv(left))
        return [block[0] for block in blocks]

    results, ends = times(act, ranks)
    for rank, blocks in enumerate(results):
        assert blocks == [(rank - step) % ranks for step in range(ranks)]
    np.testing.assert_allclose(ends, 5 * (ranks - 1))


def test_two_links_that_are_busy():
    """Rank 0 and rank 1 each send to rank 2 and rank 3.

    A (0 to 2, 1 kB): 0 to 2 ms. D (0 to 3, 1 kB) waits for rank 0's link: 2 to 4.
    B (1 to 2, 3 kB), sent at 1, waits for rank 2's link: 2 to 6. C (1 to 3, 1 kB),
    sent at 1.5, waits for rank 1's link: 6 to 8.
    """

    def act(comm):
        if comm.rank == 0:
            comm.send(kilobytes(1), 2, tag=0, wait=False)
            work = comm.send(kilobytes(1), 3, tag=0, wait=False)
            sent_at = comm.clock
            work.wait()
            return sent_at / MS
        if comm.rank == 1:
            comm.advance(1)
            comm.send(kilobytes(3), 2, tag=1, wait=False)
            comm.advance(0.5)
            return comm.send(kilobytes(1), 3, tag=1)
        arrivals = []
        for source in (0, 1):
            comm.recv(source, tag=source)
            arrivals.append(comm.clock / MS)
        return arrivals

    results, ends = times(act, 4)
    assert results[0] == 0
    np.testing.assert_allclose(results[2], [2, 6])
    np.testing.assert_allclose(results[3], [4, 8])
    np.testing.assert_allclose(ends, [4, 8, 6, 8])


def test_messages_are_sent_in_the_order_of_clocks():
    """Rank 0 has the first turn, but sends last."""

    def act(comm):
        if comm.rank == 2:
            return [comm.recv(r) is not None and comm.clock / MS for r in (1, 0)]
        comm.advance([10, 3][comm.rank])
        comm.send(kilobytes(4), 2, wait=False)

    np.testing.assert_allclose(times(act, 3)[0][2], [8, 15])


def test_a_receive_posted_ahead_or_late_ends_with_the_message():
    def act(comm):
        if comm.rank == 0:
            comm.advance(2)
            comm.send(kilobytes(1), 1)
            return comm.send(kilobytes(1), 1, tag=1)
        work = comm.recv(0, out=kilobytes(1), wait=False)
        comm.advance(1)
        work.wait()
        first = comm.clock / MS
        comm.advance(10)
        comm.recv(0, tag=1)  # has been there for long
        return first, comm.clock / MS

    results, ends = times(act, 2)
    np.testing.assert_allclose(results[1], [4, 14])
    np.testing.assert_allclose(ends, [6, 14])


def test_a_long_message_is_sent_when_it_is_received():
    def act(comm):
        if comm.rank == 0:
            comm.send(kilobytes(9), 1)  # buffered
            short = comm.clock / MS
            comm.send(kilobytes(99), 1)
            return short, comm.clock / MS
        comm.advance(500)
        comm.recv(0)
        comm.recv(0)

    results, ends = times(act, 2)
    np.testing.assert_allclose(results[0], [10, 500])
    np.testing.assert_allclose(ends, 500)


def test_messages_within_and_between_nodes():
    def act(comm):
        if comm.rank == 0:
            for to in (1, 2):
                comm.send(kilobytes(1), to, wait=False)
        elif comm.rank < 3:
            comm.recv(0)

    np.testing.assert_allclose(times(act, 4, NODES)[1], [0, 0.2, 2.2, 0])


COLLECTIVES = {
    "all_reduce": (
        lambda comm: comm.all_reduce(np.zeros(300, "f4")),
        lambda m, n: m.all_reduce(n, 1200),
    ),
    "all_reduce, 16 bits": (
        lambda comm: comm.all_reduce(np.zeros(300, "f4"), dtype="bfloat16"),
        lambda m, n: m.all_reduce(n, 600, is_16_bit=True),
    ),
    "all_gather": (
        lambda comm: comm.all_gather(kilobytes(2)),
        lambda m, n: m.all_to_all(n, 2000),
    ),
    "reduce_scatter": (
        lambda comm: comm.reduce_scatter(np.zeros((comm.size, 2000), "u1"), "max"),
        lambda m, n: m.all_to_all(n, 2000),
    ),
    "all_to_all": (
        lambda comm: comm.all_to_all(np.zeros((comm.size, 2000), "u1")),
        lambda m, n: m.all_to_all(n, 2000),
    ),
    "broadcast": (
        lambda comm: comm.broadcast(kilobytes(2)),
        lambda m, n: m.broadcast(n, 2000),
    ),
    "barrier": (lambda comm: comm.barrier(), lambda m, n: m.all_to_all(n, 0)),
}


@pytest.mark.parametrize("machine", [MACHINE, NODES])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_begins_with_the_last_call(name, machine):
    call, seconds = COLLECTIVES[name]

    def act(comm):
        comm.advance(10 * (comm.rank == 2))
        call(comm)

    expected = 10 + seconds(machine, 4) / MS
    np.testing.assert_allclose(times(act, 4, machine)[1], expected)


def test_gather_takes_as_long_as_the_root_receives():
    """Two rounds of messages from 3 ranks: headers, then 2 kB."""

    def act(comm):
        comm.gather(kilobytes(2))

    size = 4 + 4 + 24 + 16 * 8
    np.testing.assert_allclose(times(act, 4)[1], 3 * (1 + size / 1000) + 3 * 3)


def test_background_collectives_overlap_computation_but_not_each_other():
    one = MACHINE.all_reduce(4, 8000) / MS

    def act(comm):
        works = [comm.all_reduce(np.zeros(1000), wait=False) for _ in range(2)]
        comm.advance(1)
        assert not works[0].test()
        ends = []
        for work in works:
            work.wait()
            ends.append(comm.clock / MS)
        return ends

    results, ends = times(act, 4)
    np.testing.assert_allclose(results, [[one, 2 * one]] * 4)
    np.testing.assert_allclose(ends, 2 * one)


def test_groups_use_links_of_their_own_ranks_only():
    def act(comm):
        pair = comm.split(comm.rank // 2, comm.rank)
        begin = comm.clock
        pair.advance(5 * (comm.rank == 3))
        pair.all_gather(kilobytes(2))
        return (comm.clock - begin) / MS

    np.testing.assert_allclose(times(act, 4)[0], [3, 3, 8, 8])


def test_a_group_that_nodes_share_unevenly_counts_as_spread():
    def act(comm):
        part = comm.split(0 if comm.rank < 3 else None, comm.rank)
        if part is None:
            return None
        begin = comm.clock
        part.all_reduce(np.zeros(500))
        return (comm.clock - begin) / MS

    alone = Machine(latency=1e-3, bandwidth=1e6)
    expected = alone.all_reduce(3, 4000) / MS
    np.testing.assert_allclose(times(act, 4, NODES)[0][:3], [expected] * 3)


def test_traffic_is_that_of_each_rank():
    def act(comm):
        comm.advance(2)
        if comm.rank == 0:
            comm.send(kilobytes(1), 1)
            comm.send(kilobytes(3), 1, wait=False)
        else:
            comm.recv(0)
            comm.recv(0)
        comm.barrier()

    outcome = simulated.run(act, 2, MACHINE, lambda rank, task: task * MS)
    first, second = outcome.traffic
    assert first.calls == {"send": 2, "barrier": 1}
    assert (first.messages, first.bytes) == (5, 2 * 160 + 4000)  # with the headers
    assert (second.messages, second.bytes) == (1, 0)
    # The second message arrives at 8 ms, and the barrier takes 1 ms.
    np.testing.assert_allclose(outcome.seconds, 9 * MS)
    np.testing.assert_allclose(first.seconds, 7 * MS)
    np.testing.assert_allclose(second.seconds, 7 * MS)
    np.testing.assert_allclose(first.background_seconds, 4 * MS)


def test_wait_with_a_timeout():
    def act(comm):
        if comm.rank == 0:
            comm.advance(20)
            return comm.send(kilobytes(1), 1)
        work = comm.recv(0, out=kilobytes(1), wait=False)
        for timeout in (5 * MS, 16 * MS):  # not sent yet; on its way
            with pytest.raises(TimeoutError, match="recv from rank 0 .* not complete"):
                work.wait(timeout)
        given_up = comm.clock / MS
        work.wait(5 * MS)
        return given_up, comm.clock / MS

    np.testing.assert_allclose(times(act, 2)[0][1], [21, 22])


def test_a_program_that_tests_sees_each_message_when_it_arrives():
    """A server polls the receives from three ranks, which compute 5, 1 and 3 ms."""

    def act(comm):
        if comm.rank > 0:
            comm.advance([5, 1, 3][comm.rank - 1])
            return comm.send(np.zeros(1000 * comm.rank, np.uint8), 0, wait=False)
        outs = [np.empty(1000 * r, np.uint8) for r in range(1, comm.size)]
        works = {
            r: comm.recv(r, out=out, wait=False) for r, out in enumerate(outs, start=1)
        }
        seen = []
        while works:
            for r in [r for r, work in works.items() if work.test()]:
                seen.append((r, comm.clock / MS))
                del works[r]
        return seen

    # Rank 2's 2 kB from 1 to 4 ms; rank 3's 3 kB wait for the link: 4 to 8; 8 to 10.
    seen = times(act, 4)[0][0]
    assert [r for r, _ in seen] == [2, 3, 1]
    np.testing.assert_allclose([at for _, at in seen], [4, 8, 10])


def test_a_test_between_computations_takes_no_time():
    def act(comm):
        if comm.rank == 0:
            comm.advance(9)
            return comm.send(kilobytes(1), 1, wait=False)
        work, steps = comm.recv(0, out=kilobytes(1), wait=False), 0
        while not work.test():
            comm.advance(2)
            steps += 1
        return steps, comm.clock / MS

    steps, end = times(act, 2)[0][1]
    assert steps == 6  # it arrives at 11
    np.testing.assert_allclose(end, 12)


def test_computation_is_measured_without_seconds_of():
    def act(comm):
        begin = comm.clock
        x = np.random.rand(100, 100)
        for _ in range(5):
            x = x @ x / 100
        computed = comm.clock - begin
        comm.compute(7)
        comm.advance("is not counted twice")
        comm.barrier()
        return computed

    outcome = simulated.run(act, 2, Machine(latency=1))
    assert min(outcome.results) > 0
    slowest = max(outcome.results)
    for seconds in outcome.seconds:
        assert slowest + 8 <= seconds < slowest + 8 + 5


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_invalid_times_are_refused(seconds):
    def act(comm):
        with pytest.raises(ValueError, match="seconds of 0 or more"):
            comm.compute(seconds)

    simulated.run(act, 1)


def test_ranks_of_a_node_share_its_adapters():
    """Three ranks of a node send 2 kB each to another node, by two adapters."""

    def act(comm):
        if comm.rank < 3:
            comm.send(kilobytes(2), comm.rank + 3)
        else:
            comm.recv(comm.rank - 3)

    shared = dataclasses.replace(NODES, intra_size=3, adapters=2)
    np.testing.assert_allclose(sorted(times(act, 6, shared)[1]), [3, 3, 3, 3, 6, 6])
    own = dataclasses.replace(shared, adapters=0)
    np.testing.assert_allclose(times(act, 6, own)[1], 3)


def test_leaves_share_their_links():
    """Nodes of one rank; two under each leaf, and one link of 1 + 4 n ms above it."""
    spine = simulated.levels.Level(2, 1e6 / 4, 1e-3)
    machine = dataclasses.replace(MACHINE, leaf_nodes=2, switches=(spine,))

    def act(comm):
        if comm.rank < 2:
            comm.send(kilobytes(2), comm.rank + 2)
        else:
            comm.recv(comm.rank - 2)

    np.testing.assert_allclose(sorted(times(act, 4, machine)[1]), [9, 9, 18, 18])


def test_collectives_that_move_nothing_take_their_time():
    def act(comm):
        x = np.full(1000, comm.rank, np.float32)
        return comm.all_reduce(x, out=x)[0]

    moved = simulated.run(act, 4, MACHINE, lambda *_: 0.0)
    clocks = simulated.run(act, 4, MACHINE, lambda *_: 0.0, moves=False)
    assert moved.seconds == clocks.seconds and moved.results == [6, 6, 6, 6]
    assert clocks.results == [0, 1, 2, 3]
