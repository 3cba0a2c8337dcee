"""Batches of one rank on all, and orders that ranks have in common."""

import numpy as np
import pytest

from renga import serializers
from renga.distributed.iterators import (
    create_multi_node_iterator,
    create_synchronized_iterator,
)
from renga.iterators import SerialIterator, ShuffleOrderSampler

DATA = {
    "tuples": [(np.full(2, i, "f2"), np.int64(i), f"no {i}") for i in range(5)],
    "dicts": [{"x": np.array(i, "c16"), "t": (i, None)} for i in range(5)],
    "arrays": list(np.arange(10, dtype="u1").reshape(5, 2)),
}
STATE = ("epoch", "is_new_epoch", "epoch_detail", "previous_epoch_detail")


def plain(x):
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (np.ndarray, np.generic)):
        return (x.dtype.str, x.tolist())
    return x


@pytest.mark.parametrize("kind", DATA)
def test_all_ranks_get_the_masters_batches(ranks, kind):
    def act(comm):
        master = comm.size - 1
        own = DATA[kind] if comm.rank == master else None
        it = own and SerialIterator(own, 2, repeat=False, shuffle=False)
        it = create_multi_node_iterator(it, comm, master)
        seen = []
        for batch in it:
            state = [getattr(it, name) for name in (*STATE, "current_position")]
            seen.append((plain(batch), state))
        with pytest.raises(StopIteration):
            it.next()
        it.reset()
        assert it.batch_size == 2 and it.epoch == 0 and not it.repeat
        seen.append(plain(next(it)))
        return seen

    serial = SerialIterator(DATA[kind], 2, repeat=False, shuffle=False)
    expected = []
    for batch in serial:
        state = [getattr(serial, name) for name in (*STATE, "current_position")]
        expected.append((plain(batch), state))
    expected.append(plain(DATA[kind][:2]))
    for seen in ranks(act):
        assert seen == expected


def test_what_the_masters_iterator_raises_all_ranks_raise(ranks):
    class Bad:
        def __len__(self):
            return 4

        def __getitem__(self, i):
            raise KeyError("no such example")

    def act(comm):
        it = create_multi_node_iterator(SerialIterator(Bad(), 2), comm)
        with pytest.raises(KeyError, match="no such example"):
            it.next()
        return True

    assert all(ranks(act))


def test_a_multi_node_iterator_resumes(ranks):
    def act(comm):
        def new():
            own = SerialIterator(list(range(7)), 2, shuffle=False)
            return create_multi_node_iterator(own, comm)

        before, after = new(), new()
        for _ in range(2):
            before.next()
        state = serializers.DictionarySerializer()
        before.serialize(state)
        after.serialize(serializers.NpzDeserializer(state.target))
        assert [getattr(after, n) for n in STATE] == [getattr(before, n) for n in STATE]
        return after.next()

    assert all(batch == [4, 5] for batch in ranks(act))


@pytest.mark.parametrize("own_state", [False, True])
def test_a_synchronized_order(ranks, own_state):
    def act(comm):
        sampler = None
        if own_state:
            sampler = ShuffleOrderSampler(np.random.RandomState(comm.rank + 3))
        # Each rank has its own data, in the same order.
        own = [i * 10 + comm.rank for i in range(6)]
        it = SerialIterator(own, 4, order_sampler=sampler)
        assert create_synchronized_iterator(it, comm) is it
        return [[x // 10 for x in it.next()] for _ in range(6)]

    results = ranks(act)
    for batches in results:
        assert batches == results[0]
        for begin in (0, 6, 12, 18):
            flat = [i for batch in batches for i in batch]
            assert sorted(flat[begin : begin + 6]) == list(range(6))
    orders = [tuple(flat[begin : begin + 6]) for begin in (0, 6, 12, 18)]
    assert len(set(orders)) > 1
    if own_state:  # rank 0's, after the order that its iterator began with
        drawn = np.random.RandomState(3)
        expected = [tuple(drawn.permutation(6)) for _ in range(5)]
        assert orders == expected[1:]


def test_a_synchronized_order_is_that_of_chainermn(ranks):
    def act(comm):
        it = SerialIterator(list(range(6)), 6)
        comm.barrier()  # threads have one global generator
        if comm.rank == 0:
            np.random.seed(7)
        create_synchronized_iterator(it, comm)
        return it.next() + it.next()

    results = ranks(act)
    seed = np.random.RandomState(7).randint(0, 2**32 - 1)
    drawn = np.random.RandomState(seed)
    expected = [*drawn.permutation(6), *drawn.permutation(6)]
    assert all(order == expected for order in results)


def test_without_shuffling_there_is_nothing_to_synchronize(ranks):
    def act(comm):
        it = SerialIterator(list(range(4)), 2, shuffle=False)
        it.next()
        return create_synchronized_iterator(it, comm).next()

    assert all(batch == [0, 1] for batch in ranks(act))


def test_iterators_without_an_order_are_refused(ranks):
    def act(comm):
        with pytest.raises(ValueError, match="an iterator with an order_sampler"):
            create_synchronized_iterator(iter([]), comm)
        return True

    assert all(ranks(act))
