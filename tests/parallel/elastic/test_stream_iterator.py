"""StreamIterator: every epoch has every example once, whichever ranks read it."""

import collections
import types

import numpy as np
import pytest

import renga
from renga.distributed import elastic
from renga.distributed.elastic import StreamIterator
from renga.serializers import DictionarySerializer, NpzDeserializer

DATA = [f"example {i}" for i in range(17)]


class Rank:
    """All that the iterator asks of a communicator."""

    def __init__(self, rank, size):
        self.rank = rank
        self.size = size


def iterators(size, batch_size, **options):
    return [
        StreamIterator(DATA, batch_size, Rank(r, size), **options) for r in range(size)
    ]


def saved(iterator):
    serializer = DictionarySerializer()
    iterator.serialize(serializer)
    return serializer.target


def test_each_epoch_is_read_once_while_ranks_change():
    random = np.random.RandomState(0)
    state, read = None, []
    while len(read) < 6 * len(DATA):
        ranks = iterators(random.randint(1, 6), random.randint(1, 4), seed=3)
        for iterator in ranks:
            if state is not None:
                iterator.serialize(NpzDeserializer(state))
        for _ in range(random.randint(1, 4)):
            read += [example for iterator in ranks for example in next(iterator)]
        states = [saved(iterator) for iterator in ranks]
        state = states[0]
        assert all(other == state for other in states)
        # A batch is lost with its checkpoint: what is read again counts once.
        [next(iterator) for iterator in ranks]
    epochs = [read[i : i + len(DATA)] for i in range(0, 6 * len(DATA), len(DATA))]
    for epoch in epochs:
        assert collections.Counter(epoch) == collections.Counter(DATA)
    assert len({tuple(epoch) for epoch in epochs}) == 6  # in orders of their own
    assert read[:17] == [DATA[i] for i in np.random.RandomState([3, 0]).permutation(17)]


def test_without_shuffling_examples_come_in_order():
    ranks = iterators(2, 3, shuffle=False)
    assert [next(iterator) for iterator in ranks] == [DATA[:3], DATA[3:6]]
    [next(iterator) for iterator in ranks]
    assert next(ranks[0]) == DATA[12:15]
    assert next(ranks[1]) == [*DATA[15:], DATA[0]]


def test_epochs_are_counted_alike_on_all_ranks():
    ranks = iterators(3, 2)
    for end in range(6, 60, 6):
        for iterator in ranks:
            next(iterator)
            assert iterator.epoch == end // 17
            assert iterator.is_new_epoch == (end // 17 > (end - 6) // 17)
            assert iterator.epoch_detail == end / 17
            assert iterator.previous_epoch_detail == (end - 6) / 17
            assert iterator.current_position == end % 17
    ranks[0].reset()
    assert (ranks[0].epoch, ranks[0].previous_epoch_detail) == (0, None)


def test_triggers_fire_at_each_epoch():
    iterator = iterators(1, 5)[0]
    trigger = renga.training.triggers.IntervalTrigger(1, "epoch")

    fired = []
    for iteration in range(1, 9):
        next(iterator)
        updater = types.SimpleNamespace(
            iteration=iteration,
            epoch_detail=iterator.epoch_detail,
            previous_epoch_detail=iterator.previous_epoch_detail,
        )
        fired.append(trigger(types.SimpleNamespace(updater=updater)))
    assert fired == [i in (3, 6) for i in range(8)]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="batch_size: expected at least 1, got 0"):
        elastic.StreamIterator(DATA, 0, Rank(0, 1))
    with pytest.raises(ValueError, match="expected an example or more, got none"):
        elastic.StreamIterator([], 1, Rank(0, 1))
    with pytest.raises(TypeError, match="a data set with a length, got list_iterator"):
        elastic.StreamIterator(iter(DATA), 1, Rank(0, 1))
    for seed in (-1, 1 << 32):
        with pytest.raises(ValueError, match="seed: expected"):
            elastic.StreamIterator(DATA, 1, Rank(0, 1), seed=seed)
    with pytest.raises(TypeError, match="seed: expected an integer, got None"):
        elastic.StreamIterator(DATA, 1, Rank(0, 1), seed=None)
