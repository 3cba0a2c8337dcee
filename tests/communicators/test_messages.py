"""Messages that advance outside of any wait, and counts of what is sent."""

import gc
import random
import threading
import time

import numpy as np
import pytest

from renga.communicators import create_communicator, local

HEADER = 160  # bytes of the message before each array, which describes it
# In elements of 8 bytes, around the sizes up to which transports buffer: 4 and 64 KiB.
SIZES = (0, 1, 490, 511, 512, 513, 8191, 8192, 8193, 60_000)
SOON = 30  # seconds; long before the time-out of a receive


def neighbours(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


@pytest.mark.parametrize("size", [3, 1_000, 1_000_000])
def test_array_arrives_while_its_receiver_only_computes(ranks_with_threads, size):
    def act(comm):
        right, left = neighbours(comm)
        out = np.zeros(size)
        work = comm.recv(left, 3, out=out, wait=False)
        comm.barrier()
        comm.send(np.full(size, comm.rank + 1.0), right, 3, wait=False)
        deadline = time.perf_counter() + SOON
        while out[-1] == 0 and time.perf_counter() < deadline:
            np.ones((100, 100)) @ np.ones((100, 100))
        arrived = out[-1] != 0  # without a call of the communicator
        comm.barrier()
        work.wait()
        np.testing.assert_array_equal(out, left + 1)
        return arrived

    assert all(ranks_with_threads(act))


def test_ranks_that_first_send_everything_do_not_wait_for_each_other(several_ranks):
    def act(world):
        comm = world.split(min(world.rank // 2, world.size // 2 - 1), 0)
        right, left = neighbours(comm)
        x = np.arange(1_000_000.0)
        for i in range(50):
            comm.send(x + i if i < 2 else x, right, i % 7, wait=False)
        # The receiver takes the tags in another order.
        for tag in reversed(range(7)):
            for i in range(tag, 50, 7):
                y = comm.recv(left, tag)
                assert y[0] == (i if i < 2 else 0) and y[-1] == y[0] + 999_999
        world.barrier()

    several_ranks(act)


def drawn_messages(seed, ranks):
    """(source, destination, tag, size) of each message, in the order of sending."""
    chance = random.Random(seed)
    return [
        (*chance.sample(range(ranks), 2), chance.randrange(4), chance.choice(SIZES))
        for _ in range(60)
    ]


def in_another_order(messages, chance):
    """A random order that keeps that of messages with the same source and tag."""
    queues = {}
    for i, (source, _, tag, _) in enumerate(messages):
        queues.setdefault((source, tag), []).append(i)
    order = [key for key, queue in queues.items() for _ in queue]
    chance.shuffle(order)
    return [queues[key].pop(0) for key in order]


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_sends_and_receives(several_ranks, seed):
    def act(world):
        comm = world.split(0, world.rank)  # own messages only
        chance = random.Random(100 * seed + comm.rank)
        drawn = drawn_messages(seed, comm.size)
        numbered = list(enumerate(drawn, 1))
        sent = [(n, m) for n, m in numbered if m[0] == comm.rank]
        received = [(n, m) for n, m in numbered if m[1] == comm.rank]
        received = [
            received[i] for i in in_another_order([m for _, m in received], chance)
        ]
        works, expected = [], []
        while sent or received:
            if received and (not sent or chance.random() < 0.6):
                n, (source, _, tag, size) = received.pop(0)
                out = np.full(size, -1.0)
                works.append(comm.recv(source, tag, out=out, wait=False))
                expected.append(n)
            else:
                n, (_, to, tag, size) = sent.pop(0)
                comm.send(np.full(size, float(n)), to, tag, wait=False)
            if chance.random() < 0.1:
                time.sleep(0.002)
        pairs = list(zip(works, expected))
        chance.shuffle(pairs)
        for work, n in pairs:
            np.testing.assert_array_equal(work.wait(SOON), n)
        comm.barrier()

    several_ranks(act)


def test_dropped_works_leave_neither_messages_nor_memory_behind(several_ranks):
    def act(world):
        comm = world.split(0, world.rank)
        right, left = neighbours(comm)
        comm.recv(left, 8, out=np.empty(100_000), wait=False)
        gc.collect()  # the receive is cancelled
        comm.send(np.full(100_000, 1.0), right, 9, wait=False)
        gc.collect()  # the send is not
        work = comm.recv(left, 9, out=np.empty(100_000), wait=False)
        assert work.wait(SOON)[-1] == 1
        comm.barrier()

    several_ranks(act)


def test_threads_of_a_rank_wait_for_the_same_message(ranks_with_threads):
    def act(comm):
        right, left = neighbours(comm)
        work = comm.recv(left, 2, out=np.zeros(300_000), wait=False)
        got = []

        def wait():
            got.append(work.wait(SOON)[-1])

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        comm.send(np.full(300_000, 5.0), right, 2, wait=False)
        for thread in threads:
            thread.join()
        comm.barrier()
        return got

    assert all(got == [5.0] * 3 for got in ranks_with_threads(act))


def test_message_goes_on_after_a_time_out_of_wait(ranks_with_threads):
    def act(comm):
        right, left = neighbours(comm)
        out = np.zeros(300_000)
        work = comm.recv(left, 2, out=out, wait=False)
        with pytest.raises(TimeoutError, match="recv .*waited 0.05 s for rank"):
            work.wait(0.05)
        comm.barrier()
        comm.send(np.full(300_000, 5.0), right, 2, wait=False)
        deadline = time.perf_counter() + SOON
        while out[-1] == 0 and time.perf_counter() < deadline:
            time.sleep(0.001)
        arrived = out[-1]
        assert work.wait(SOON) is out
        comm.barrier()
        return arrived

    assert set(ranks_with_threads(act)) == {5.0}


def test_traffic_counts_each_byte_that_is_sent(several_ranks):
    def act(world):
        comm = world.split(0, world.rank)
        right, left = neighbours(comm)
        assert comm.traffic.messages == 0 and comm.traffic.calls == {}
        before = world.traffic
        sent = comm.send(np.zeros((3, 5), "float32"), right, 1, wait=False)
        comm.send((np.zeros(7), np.zeros(0)), right, 2, wait=False)
        comm.recv(left, 1, out=np.empty((3, 5), "float32"))
        comm.recv(left, 2)
        sent.wait()
        traffic = comm.traffic
        size = HEADER + 60 + HEADER + (HEADER + 56) + HEADER  # of the tuple, too
        assert traffic.messages == 2 + 5
        assert traffic.bytes == traffic.bytes_by_call["send"] == size
        assert traffic.calls["send"] == 2
        # A group's traffic is also that of the communicator it was split from.
        assert world.traffic.bytes_by_call["send"] == (
            before.bytes_by_call["send"] + size
        )
        comm.barrier()

    several_ranks(act)


@pytest.mark.parametrize("shared_memory", [True, False])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_traffic_counts_messages_of_collectives(size, shared_memory):
    def act(comm):
        comm.barrier()
        small = np.ones(4)
        comm.all_reduce(small, out=small)
        comm.all_reduce(np.ones(4), wait=False).wait()
        comm.all_gather(np.ones(1000))
        assert comm.traffic.seconds == comm.traffic.background_seconds == 0
        return comm.traffic

    others = size - 1
    # One message of 512 bytes to each rank compares calls, and carries what fits.
    each = {"barrier": 512, "all_reduce": 2 * 512, "all_gather": 512 + 8000}
    for traffic in local.run(act, ranks=size, shared_memory=shared_memory):
        assert traffic.calls == {"barrier": 1, "all_reduce": 2, "all_gather": 1}
        if shared_memory:
            assert traffic.messages == traffic.bytes == 0
        else:
            assert traffic.bytes_by_call == {k: others * v for k, v in each.items()}
            assert traffic.messages == others * 5


def test_simulated_ranks_count_the_same_for_messages():
    def play(comm):
        comm.send(np.ones((2, 3)), 1 - comm.rank, 4, wait=False)
        comm.recv(1 - comm.rank, 4, out=np.empty((2, 3)))
        comm.send([np.ones(5), np.ones(1)], 1 - comm.rank, 5, wait=False)
        comm.recv(1 - comm.rank, 5)
        return comm.traffic

    simulated = play(create_communicator("simulated", size=2))
    for real in local.run(play, ranks=2):
        assert real.calls == simulated.calls
        assert (real.messages, real.bytes) == (simulated.messages, simulated.bytes)
        assert real.bytes_by_call == simulated.bytes_by_call


def test_traffic_of_a_simulated_group():
    world = create_communicator("simulated", size=4)
    group = world.split_by(lambda rank: rank % 2)
    before = world.traffic
    group.send(np.ones(10), 1)
    assert group.traffic.bytes == world.traffic.bytes == HEADER + 80
    assert before.bytes == 0  # what was read does not change
