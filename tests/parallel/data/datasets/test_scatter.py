"""Data sets that only the root has, scattered over the ranks."""

import pickle

import numpy as np
import pytest

from renga import datasets
from renga.distributed import scatter_dataset, scatter_index
from renga.distributed.datasets import create_empty_dataset
from renga.parallel.data.datasets.narrow import narrow


def parts_of(n, size, equal):
    """The expected ranges: of one length, overlapping, or of almost one length."""
    if equal:
        return [(n * i // size, n * i // size - (-n // size)) for i in range(size)]
    lengths = [n // size + (i < n % size) for i in range(size)]
    ends = np.cumsum(lengths)
    return [(int(e - length), int(e)) for e, length in zip(ends, lengths)]


@pytest.mark.parametrize("equal", [True, False])
def test_scatter_index(ranks, equal):
    totals = [0, 1, 7, 8, 9, 12]

    def act(comm):
        root = comm.size - 1
        known = totals if comm.rank == root else [None] * len(totals)
        return [scatter_index(n, comm, root, force_equal_length=equal) for n in known]

    for n, *found in zip(totals, *ranks(act)):
        assert found == parts_of(n, len(found), equal)
        assert {i for b, e in found for i in range(b, e)} == set(range(n))


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_only_the_root_needs_the_data(ranks, equal, shuffle):
    x, t = np.arange(22).reshape(11, 2), np.arange(11)

    def act(comm):
        dataset = datasets.TupleDataset(x, t) if comm.rank == 0 else None
        shard = scatter_dataset(
            dataset, comm, shuffle=shuffle, seed=3, force_equal_length=equal
        )
        return [(a.tolist(), int(b)) for a, b in shard[:]], len(shard)

    order = np.random.RandomState(3).permutation(11) if shuffle else np.arange(11)
    results = ranks(act)
    for (examples, length), (b, e) in zip(results, parts_of(11, len(results), equal)):
        assert examples == [(x[i].tolist(), t[i]) for i in order[b:e]]
        assert length == e - b


def test_the_data_of_other_ranks_are_ignored(ranks):
    def act(comm):
        return list(scatter_dataset([comm.rank] * 4, comm, root=comm.size - 1))

    results = ranks(act)
    assert {value for values in results for value in values} == {len(results) - 1}


def test_examples_that_overlap_are_hidden_on_one_rank(ranks):
    def act(comm):
        shard = scatter_dataset(list(range(10)) if comm.rank == 0 else None, comm)
        with shard.without_repeats():
            own = list(shard)
        return own, len(shard)

    results = ranks(act)
    assert [i for own, _ in results for i in own] == list(range(10))
    assert {length for _, length in results} == {-(-10 // len(results))}


def test_an_unknown_root_is_refused(ranks):
    with pytest.raises(ValueError, match=r"expected a root in \[0, \d\), got 9"):
        ranks(lambda comm: scatter_dataset([1], comm, root=9))


class Odd:
    """A data set of its own kind."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return 10 * index


def scale(example):
    return example * 2


LARGE = np.arange(100_000)
KINDS = {
    "array": LARGE,
    "list": list(range(1000)),
    "tuples": datasets.TupleDataset(LARGE, LARGE[::-1]),
    "dictionaries": datasets.DictDataset(x=LARGE, y=list(LARGE)),
    "part": datasets.SubDataset(LARGE, 100, 1100, LARGE[::-1]),
    "part in order": datasets.SubDataset(LARGE, 100, 1100),
    "transformed": datasets.TransformDataset(LARGE, scale),
}


@pytest.mark.parametrize("kind", KINDS)
def test_narrowed_data_sets_have_the_same_examples_and_nothing_else(kind):
    dataset = KINDS[kind]
    indices = np.array([7, 3, 99])
    narrowed = narrow(dataset, indices)
    assert [narrowed[i] for i in range(3)] == [dataset[int(i)] for i in indices]
    assert len(pickle.dumps(narrowed)) < 2000


@pytest.mark.parametrize("inside", [lambda d: d, datasets.TupleDataset])
def test_data_sets_of_unknown_kind_are_sent_whole(ranks, inside):
    def act(comm):
        return list(scatter_dataset(inside(Odd()) if comm.rank == 0 else None, comm))

    results = ranks(act)
    expected = list(inside(Odd())[i] for i in range(5))
    for shard, (b, e) in zip(results, parts_of(5, len(results), True)):
        assert shard == expected[b:e]


def test_a_random_transform_is_made_at_each_reading(ranks):
    def act(comm):
        random = np.random.RandomState(comm.rank)
        dataset = datasets.TransformDataset([0.0] * 8, lambda x: x + random.rand())
        shard = scatter_dataset(dataset, comm) if comm.size == 1 else None
        return shard is None or shard[0] != shard[0]

    assert all(ranks(act))


def test_empty_data_sets_have_the_length():
    assert create_empty_dataset(range(3)) == [(), (), ()]


class Files:
    """A data set that reads what it gives."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return [j * j for j in range(self.n)][i]


@pytest.mark.parametrize("kind", ["files", "arrays"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_data_sets_of_all_ranks_are_not_sent(ranks, kind, shuffle):
    def act(comm):
        dataset = Files(11)
        if kind == "arrays":
            dataset = datasets.TupleDataset(np.arange(11) ** 2)

        def refuse(*args):
            raise AssertionError("nothing is to be sent")

        comm.send_obj = refuse
        try:
            # The root's wishes count.
            mine = shuffle if comm.rank == 0 else None
            shard = scatter_dataset(dataset, comm, shuffle=mine, seed=3 + comm.rank)
        finally:
            del comm.send_obj
        return [int(x[0]) if kind == "arrays" else x for x in shard]

    order = np.random.RandomState(3).permutation(11) if shuffle else np.arange(11)
    results = ranks(act)
    for values, (b, e) in zip(results, parts_of(11, len(results), True)):
        assert values == [int(i) ** 2 for i in order[b:e]]


def test_what_differs_by_one_bit_is_sent(ranks):
    def act(comm):
        x = np.zeros(9, "i4")
        x[-1] = comm.rank
        return int(sum(scatter_dataset(x, comm, force_equal_length=False)))

    assert set(ranks(act)) == {0}
