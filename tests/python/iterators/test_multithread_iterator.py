"""MultithreadIterator: prefetching in threads."""

import copy
import os
import pickle
import threading
import time
from concurrent.futures import Future

import pytest

from renga.iterators import MultithreadIterator
from renga.iterators.multithread_iterator import ReadAheadIterator


class Recorder:
    """Records which examples were read, and in which threads."""

    def __init__(self, size):
        self.size = size
        self.read = []
        self.threads = set()

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index == 13:
            raise LookupError("unlucky")
        self.read.append(index)
        self.threads.add(threading.get_ident())
        return index

    def wait_for(self, count):
        deadline = time.monotonic() + 10
        while len(self.read) < count and time.monotonic() < deadline:
            time.sleep(0.001)
        return sorted(self.read)


def test_the_next_batch_is_read_while_this_one_is_in_use():
    dataset = Recorder(10)
    with MultithreadIterator(dataset, 3, shuffle=False) as iterator:
        assert dataset.read == []
        assert next(iterator) == [0, 1, 2]
        assert dataset.wait_for(6) == [0, 1, 2, 3, 4, 5]
        assert threading.get_ident() not in dataset.threads
        for want in ([3, 4, 5], [6, 7, 8], [9, 0, 1], [2, 3, 4]):
            assert next(iterator) == want
        # Only examples of the current epoch are prefetched, once.
        assert dataset.wait_for(18) == sorted([*range(10), *range(8)])


def test_examples_of_a_batch_are_read_at_the_same_time():
    barrier = threading.Barrier(4, timeout=10)

    class Rendezvous:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            barrier.wait()
            return index

    with MultithreadIterator(
        Rendezvous(), 4, repeat=False, shuffle=False, n_threads=4
    ) as iterator:
        assert next(iterator) == [0, 1, 2, 3]


def test_an_error_is_raised_at_its_batch_and_the_next_batch_follows():
    with MultithreadIterator(Recorder(20), 4, shuffle=False) as iterator:
        for want in ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]):
            assert next(iterator) == want
        with pytest.raises(LookupError, match="unlucky"):
            next(iterator)
        assert next(iterator) == [16, 17, 18, 19]


def test_a_reset_discards_what_was_read_ahead():
    iterator = MultithreadIterator(Recorder(10), 3, shuffle=False)
    assert next(iterator) == [0, 1, 2]
    iterator.reset()
    assert next(iterator) == [0, 1, 2]
    assert next(iterator) == [3, 4, 5]
    iterator.finalize()


def test_finalize_ends_the_threads_and_reading_may_go_on():
    before = set(threading.enumerate())
    iterator = MultithreadIterator(Recorder(10), 2, shuffle=False, n_threads=2)
    assert next(iterator) == [0, 1]
    assert set(threading.enumerate()) - before
    iterator.finalize()
    iterator.finalize()
    assert set(threading.enumerate()) <= before
    assert next(iterator) == [2, 3]
    del iterator
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    "make_copy", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_the_original_go_on_independently(make_copy):
    original = MultithreadIterator(list(range(10)), 3, shuffle=False, n_threads=2)
    assert next(original) == [0, 1, 2]
    other = make_copy(original)
    assert next(other) == [3, 4, 5]
    other.finalize()
    del other
    assert [next(original) for _ in range(2)] == [[3, 4, 5], [6, 7, 8]]
    original.finalize()


def test_a_forked_process_reads_by_its_own_threads():
    iterator = MultithreadIterator(list(range(10)), 3, shuffle=False)
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            threading.Timer(20, os._exit, [2]).start()
            os._exit(next(iterator) != [3, 4, 5])
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert next(iterator) == [3, 4, 5]
    iterator.finalize()


class Recorded(ReadAheadIterator):
    """Reads at once, and keeps the indices that it has read."""

    _order_key = "_order"
    read = ()

    def _submit(self, indices):
        self.read += tuple(indices)
        done = [Future() for _ in indices]
        for future, index in zip(done, indices):
            future.set_result(self.dataset[index])
        return done


@pytest.mark.parametrize("n_prefetch", [-1, 0, 1, 2])
def test_as_many_batches_are_read_ahead_as_asked_for(n_prefetch):
    iterator = Recorded(range(12), 2, True, False, None, n_prefetch)
    for step in range(1, 4):
        assert next(iterator) == [2 * step - 2, 2 * step - 1]
        assert iterator.read == tuple(range(2 * (step + max(n_prefetch, 0))))
