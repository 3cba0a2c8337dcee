"""Gradients of several batches, reduced once, against one batch of all samples."""

import io

import numpy as np
import pytest

import renga
from renga import training
from renga.distributed import compression
from renga.parallel.data import buckets
from tests.parallel.compression.nodes import make_compressed, on_nodes
from tests.parallel.compression.test_training import both
from tests.parallel.data.training_steps import (
    BATCH,
    Barrier,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
)


def serial(steps=3):
    model, optimizer = make()
    for x, t in zip(X[:steps], T[:steps]):
        optimizer.update(model, x, t)
    return parameters(model)


def cut(comm, batch, sizes):
    """This rank's samples of a batch, in parts of the relative sizes."""
    own = own_samples(comm, batch)
    stops = (np.cumsum(sizes) / sum(sizes) * len(own)).round().astype(int)
    return np.split(own, stops[:-1])


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 2), (0, 1, 3, 0), (2,)])
def test_many_batches_are_one(ranks, reduction, sizes):
    def train(comm):
        model, optimizer = make(comm)
        assert optimizer.accumulate(len(sizes)) is optimizer
        for x, t in zip(X, T):
            before = optimizer.t
            for part in zip(cut(comm, x, sizes), cut(comm, t, sizes)):
                assert optimizer.t == before
                optimizer.update(model, *part)
            assert optimizer.t == before + 1
        return parameters(model)

    check(ranks(train), serial(), atol=1e-6)


def test_ranks_whose_numbers_of_batches_differ(some_ranks, reduction):
    def train(comm):
        model, optimizer = make(comm)
        batches = 1 + comm.rank
        optimizer.accumulate(batches)
        for x, t in zip(X, T):
            sizes = [1] * batches
            for part in zip(cut(comm, x, sizes), cut(comm, t, sizes)):
                optimizer.update(model, *part)
        return parameters(model)

    check(some_ranks(train), serial(), atol=1e-6)


def test_joining_sends_what_waits_for_more_batches(ranks, reduction):
    def train(comm):
        model, optimizer = make(comm)
        # In the last round, rank r has r of 4 batches.
        for step, (x, t) in enumerate(zip(X, T)):
            optimizer.accumulate(4)
            rounds = 4 if step < 2 else comm.rank
            sizes = [1] * max(1, rounds)
            for part in list(zip(cut(comm, x, sizes), cut(comm, t, sizes)))[:rounds]:
                optimizer.update(model, *part)
        optimizer.join()
        return parameters(model)

    results = ranks(train)
    model, optimizer = make()
    for x, t in zip(X[:2], T[:2]):
        optimizer.update(model, x, t)
    size = len(results)
    rest = np.arange(BATCH) % size > 0
    if size > 1:  # rank 0 has no sample of the last batch
        optimizer.update(model, X[2][rest], T[2][rest])
    check(results, parameters(model), atol=1e-6)


def test_one_reduction_in_several_batches(some_ranks, no_sharded_updates):
    def train(comm):
        group = comm.split(0, comm.rank)
        model, optimizer = make(group)
        optimizer.accumulate(3)
        counts = []
        for _ in range(9):
            before = group.traffic.calls["all_reduce"]
            optimizer.update(model, own_samples(comm, X[0]), own_samples(comm, T[0]))
            counts.append(group.traffic.calls["all_reduce"] > before)
        return counts

    for counts in some_ranks(train):
        assert counts[3:] == [False, False, True] * 2


def test_the_last_backward_pass_is_overlapped(some_ranks, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)

    def train(comm):
        model, optimizer = make(comm)
        in_backward, launched = [], []

        def hook(bucket):
            launched.append(bool(in_backward))
            return comm.all_reduce(bucket.gradients, "mean", wait=False)

        def loss(x, t):
            y = Barrier(comm).apply([model(x, t)])[0]
            backward = y.backward

            def observed(**kwargs):
                in_backward.append(1)
                backward(**kwargs)
                in_backward.clear()

            y.backward = observed
            return y

        optimizer.add_bucket_hook(hook)
        optimizer.accumulate(2)
        for _ in range(4):
            optimizer.update(loss, own_samples(comm, X[0]), own_samples(comm, T[0]))
        return launched

    for launched in some_ranks(train):
        # Two updates of 8 parameters, each in a bucket of its own.
        assert len(launched) == 16 and all(launched)


def test_an_updater_accumulates(some_ranks, reduction):
    def train(comm, accumulate):
        model, optimizer = make(comm)
        x = own_samples(comm, np.concatenate([*X, *X]))
        t = own_samples(comm, np.concatenate([*T, *T]))
        data = renga.datasets.TupleDataset(x, t)
        size = len(x) // 3 // accumulate
        iterator = renga.iterators.SerialIterator(data, size, shuffle=False)
        updater = training.StandardUpdater(iterator, optimizer, accumulate=accumulate)
        for _ in range(3):
            updater.update()
        return parameters(model)

    expected = some_ranks(train, 1)
    for got, params in zip(some_ranks(train, 2), expected):
        for name, value in params.items():
            np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-6)


def test_accumulation_of_compressed_gradients(some_ranks):
    def train(comm, count):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compression.TopK(1.0))
        optimizer.accumulate(count)
        for x, t in zip(X, T):
            sizes = [1] * count
            for part in zip(cut(comm, x, sizes), cut(comm, t, sizes)):
                optimizer.update(model, *part)
        return parameters(model)

    check(some_ranks(train, 3), serial(), atol=1e-6)


def test_what_ranks_have_loaded_remains(some_ranks):
    """Persistent values that differ between ranks, when accumulation is resumed."""

    def run(comm):
        x, t = own_samples(comm, X[0]), own_samples(comm, T[0])
        file = io.BytesIO()
        for resumes in (False, True):
            model, optimizer = make(comm)
            model.add_persistent("own", np.array(-1.0))
            if resumes:
                file.seek(0)
                renga.serializers.load_npz(file, both(model, optimizer))
            optimizer.accumulate(2)
            for _ in range(2):
                optimizer.update(model, x, t)
            if not resumes:
                model.own = np.array(float(comm.rank))
                renga.serializers.save_npz(file, both(model, optimizer))
        return float(model.own)

    results = some_ranks(run)
    assert results == list(range(len(results)))


def test_invalid_counts(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        with pytest.raises(ValueError, match="expected at least 1, got 0"):
            optimizer.accumulate(0)
        optimizer.accumulate(2).update(model, X[0], T[0])
        with pytest.raises(RuntimeError, match="got 1 batches"):
            optimizer.accumulate(2)
        optimizer.join()

    some_ranks(run)
