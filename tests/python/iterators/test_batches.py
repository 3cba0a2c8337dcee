"""SerialIterator and MultithreadIterator against the definition of an epoch."""

import itertools

import numpy
import pytest
from hypothesis import given, settings, strategies as st

from renga.iterators import (
    MultithreadIterator,
    OrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
)


def multithread(*args, **kwargs):
    return MultithreadIterator(*args, n_threads=3, **kwargs)


ITERATORS = {"serial": SerialIterator, "multithread": multithread}


@pytest.fixture(params=ITERATORS)
def make(request):
    return ITERATORS[request.param]


sizes = st.integers(1, 12)
iterators = st.sampled_from(list(ITERATORS.values()))


@given(iterators, sizes, st.integers(1, 15))
@settings(deadline=None)
def test_repeating_is_a_cycle(make, size, batch_size):
    iterator = make(range(size), batch_size, shuffle=False)
    endless = itertools.cycle(range(size))
    done = 0
    assert iterator.previous_epoch_detail is None and iterator.epoch_detail == 0
    for _ in range(8):
        assert next(iterator) == list(itertools.islice(endless, batch_size))
        before, done = done, done + batch_size
        assert iterator.epoch == done // size
        assert iterator.current_position == done % size
        assert iterator.is_new_epoch == (done // size > before // size)
        assert iterator.epoch_detail == pytest.approx(done / size)
        assert iterator.previous_epoch_detail == pytest.approx(before / size)


@given(iterators, st.integers(0, 12), st.integers(1, 15))
@settings(deadline=None)
def test_without_repeat_one_epoch_is_cut_into_batches(make, size, batch_size):
    iterator = make(range(size), batch_size, repeat=False, shuffle=False)
    for _ in range(2):
        want = [
            list(range(size))[i : i + batch_size] for i in range(0, size, batch_size)
        ]
        assert list(iterator) == want
        if size:
            assert iterator.is_new_epoch and iterator.epoch == 1
            assert iterator.epoch_detail == 1 and iterator.current_position == 0
        with pytest.raises(StopIteration):
            next(iterator)
        iterator.reset()
        assert (iterator.epoch, iterator.current_position) == (0, 0)
        assert not iterator.is_new_epoch and iterator.previous_epoch_detail is None


@given(iterators, sizes, st.integers(1, 15), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_shuffled_epochs_are_numpys_permutations(make, size, batch_size, seed):
    numpy.random.seed(seed)
    iterator = make(range(size), batch_size)
    got = [next(iterator) for _ in range(6)]
    after = numpy.random.rand()
    numpy.random.seed(seed)
    epochs = [numpy.random.permutation(size) for _ in range(iterator.epoch + 1)]
    endless = itertools.chain.from_iterable(epochs)
    assert got == [list(itertools.islice(endless, batch_size)) for _ in range(6)]
    # No other number was drawn, so a script continues as with a serial iterator.
    assert after == numpy.random.rand()


def test_the_order_is_chainers_for_the_same_seed(make):
    # Chainer 7.8.1 printed this order.
    numpy.random.seed(3)
    iterator = make(range(5), 2)
    assert [next(iterator) for _ in range(8)] == [
        [3, 4], [1, 0], [2, 2], [1, 3], [4, 0], [0, 4], [1, 2], [3, 3]
    ]  # fmt: skip


def test_shuffle_is_on_unless_it_is_off():
    numpy.random.seed(0)
    for shuffle in (None, True):
        assert next(SerialIterator(range(100), 100, shuffle=shuffle)) != [*range(100)]
    assert next(SerialIterator(range(100), 100, shuffle=False)) == [*range(100)]


def test_a_random_state_of_ones_own(make):
    sampler = ShuffleOrderSampler(numpy.random.RandomState(5))
    global_state = numpy.random.get_state()[1].copy()
    iterator = make(range(6), 6, order_sampler=sampler)
    want = numpy.random.RandomState(5)
    for _ in range(3):
        assert next(iterator) == want.permutation(6).tolist()
    numpy.testing.assert_array_equal(numpy.random.get_state()[1], global_state)


def test_an_order_sampler_may_leave_out_examples(make):
    calls = []

    class EveryOther(OrderSampler):
        def __call__(self, current_order, current_position):
            calls.append((list(current_order), current_position))
            return [4, 0, 2] if len(calls) > 1 else numpy.array([0, 2, 4])

    iterator = make(list("abcdef"), 2, order_sampler=EveryOther())
    assert calls == [([0, 1, 2, 3, 4, 5], 0)]
    assert [next(iterator) for _ in range(3)] == [list("ac"), list("ee"), list("ac")]
    assert iterator.epoch_detail == 2
    assert calls[1:] == [([0, 2, 4], 2), ([4, 0, 2], 1)]


def test_an_order_sampler_may_return_none(make):
    iterator = make(range(3), 2, order_sampler=lambda order, position: None)
    assert [next(iterator) for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]


def test_faults(make):
    for shuffle in (True, False):
        with pytest.raises(ValueError, match="shuffle=None with an order_sampler"):
            make([1], 1, shuffle=shuffle, order_sampler=ShuffleOrderSampler())
    with pytest.raises(ValueError, match="at least one example"):
        next(make([], 1))
    shrinking = make(range(3), 3, order_sampler=lambda order, _: order[1:])
    with pytest.raises(ValueError, match="expected an order of 2 indices.* got 1"):
        next(shrinking)
    with pytest.raises(NotImplementedError):
        OrderSampler()(numpy.arange(3), 0)


def test_the_interface_of_an_iterator(make):
    dataset = list("abc")
    iterator = make(dataset, 2, repeat=False, shuffle=False)
    assert iterator.dataset is dataset and iterator.batch_size == 2
    assert iterator.repeat is False and make(dataset, 2).repeat is True
    assert iter(iterator) is iterator
    with iterator as entered:
        assert entered is iterator and entered.next() == ["a", "b"]
    assert iterator.next() == ["c"]
    iterator.finalize()


def test_subclasses_override_next_in_either_spelling(make):
    base = type(make(range(4), 2))

    class Both(base):
        def next(self):
            return [10 * i for i in super().next()]

        __next__ = next

    class Next(base):
        def next(self):
            return [10 * i for i in super().next()]

    class Dunder(base):
        def __next__(self):
            return [10 * i for i in super().__next__()]

    class Mixin:
        def __next__(self):
            return [10 * i for i in super().__next__()]

    class Mixed(Mixin, base):
        pass

    for kind in (Both, Dunder, Mixed):
        with kind(range(4), 2, shuffle=False) as iterator:
            assert next(iterator) == [0, 10]
            assert iterator.next() == [20, 30]
    with Next(range(4), 2, shuffle=False) as iterator:
        assert iterator.next() == [0, 10]
