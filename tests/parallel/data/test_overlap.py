"""The size of buckets and their overlap: measured, without effect on the bits."""

import numpy as np
import pytest

from renga.communicators import Communicator, packing
from renga.communicators.simulated import VirtualCommunicator
from renga.parallel.data import buckets
from renga.parallel.data.bucketed_reducer import BucketedReducer
from renga.parallel.data.overlap import OverlapTrial
from tests.parallel.data.training_steps import (
    T,
    X,
    make,
    own_samples,
    parameters,
)


def trial_of(comm, clock, seconds):
    """A finished trial of steps that last ``seconds(overlaps)``, and its ways."""
    trial, ways = OverlapTrial(comm), []
    while trial.choice is None and len(ways) < 20:
        ways.append(trial.overlaps)
        trial.begin()
        clock[comm.rank] += seconds(trial.overlaps, len(ways) - 1)
        trial.end()
    return trial, ways


@pytest.fixture
def clock(monkeypatch):
    """A clock for each rank, by its number."""
    times = dict.fromkeys(range(8), 0.0)
    for kind in (Communicator, VirtualCommunicator):
        monkeypatch.setattr(kind, "clock", property(lambda comm: times[comm.rank]))
    return times


@pytest.mark.parametrize("faster", [False, True])
def test_the_faster_way_is_chosen(several_ranks, clock, faster):
    def act(comm):
        def seconds(overlaps, step):
            # The first steps, and a step now and then, take long for other reasons.
            return (1 if overlaps == faster else 2) + 50 * (step < 2 or step == 5)

        trial, ways = trial_of(comm, clock, seconds)
        return trial.choice, trial.overlaps, ways

    for choice, overlaps, ways in several_ranks(act):
        assert choice is faster and overlaps is faster
        assert ways == [True, True, *[True, False] * 3]


def test_the_slowest_rank_decides(several_ranks, clock):
    def act(comm):
        def seconds(overlaps, step):
            if comm.rank == comm.size - 1:
                return 10 if overlaps else 9
            return 1 if overlaps else 5

        return trial_of(comm, clock, seconds)[0].choice

    assert set(several_ranks(act)) == {False}


def test_one_rank_tries_nothing(clock):
    class Alone:
        rank, size = 0, 1

    assert OverlapTrial(Alone()).choice is True


def test_both_ways_have_the_same_bits(several_ranks, no_sharded_updates, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)
    first, has_started, average = {}, {}, packing.average

    def record(comm, grads, wait=True):
        has_started[comm.rank].append(first[comm.rank].grad_var is not None)
        return average(comm, grads, wait)

    monkeypatch.setattr(packing, "average", record)

    def train(comm):
        model, optimizer = make(comm)
        comm.bcast_data(model)
        first[comm.rank] = model.layers[0].W
        for x, t in zip(X, T):
            has_started[comm.rank] = []
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        return parameters(model), has_started[comm.rank]

    monkeypatch.setattr(OverlapTrial, "overlaps", True)
    with_overlap = several_ranks(train)
    monkeypatch.setattr(OverlapTrial, "overlaps", False)
    for (expected, _), (got, seen) in zip(with_overlap, several_ranks(train)):
        for name, value in expected.items():
            np.testing.assert_array_equal(value, got[name])
        # All gradients have been taken before the only bucket is launched.
        assert seen == [False]


@pytest.mark.parametrize("overlap_pays", [False, True])
@pytest.mark.parametrize("hooked", ["no hook", "a user's hook", "by parameter"])
def test_buckets_are_large_where_nothing_overlaps(
    several_ranks, no_sharded_updates, monkeypatch, clock, hooked, overlap_pays
):
    monkeypatch.setattr(buckets, "hooked_bucket_bytes", lambda comm: 40)
    monkeypatch.setattr(buckets, "bucket_bytes", lambda comm: 40)
    end, launch_next = OverlapTrial.end, BucketedReducer._launch_next
    launched = {}

    def end_later(trial):
        clock[trial._comm.rank] += 1 if trial.overlaps is overlap_pays else 2
        end(trial)

    def count_launches(reducer, weight):
        launched[reducer._comm.rank][-1] += 1
        launch_next(reducer, weight)

    monkeypatch.setattr(OverlapTrial, "end", end_later)
    monkeypatch.setattr(BucketedReducer, "_launch_next", count_launches)

    def train(comm):
        counts = launched[comm.rank] = []
        model, optimizer = make(comm)

        def hook(bucket):
            return comm.all_reduce(bucket.gradients, "mean", wait=False)

        hook.reduces_by_parameter = hooked == "by parameter"
        if hooked != "no hook":
            optimizer.add_bucket_hook(hook)
        for step in range(12):
            counts.append(0)
            x, t = X[step % len(X)], T[step % len(T)]
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        return counts, parameters(model)

    found = several_ranks(train)
    for counts, values in found:
        # Eight buckets of one gradient after the first step. In the trial, steps with
        # and without overlap take turns.
        large = 8 if hooked == "a user's hook" else 1
        assert counts[1:8] == [8, *[8, large] * 3]
        assert counts[8:] == [8 if overlap_pays else large] * 4
        for name, value in found[0][1].items():
            np.testing.assert_array_equal(value, values[name])


@pytest.mark.parametrize(
    ("ranks", "latency", "gigabits", "expected"),
    [
        # (1e-4 s + 2 log2(ranks) latencies) / (5 % of twice the seconds of a byte)
        (2, 40e-6, 10, 2_250_000),
        (2, 60e-6, 1, 275_000),
        (2, 100e-6, 0.1, 1 << 18),  # the least
        (16, 40e-6, 25, 4 << 20),  # the most
        (4, 10e-6, 10, 1_750_000),
    ],
)
def test_buckets_are_smaller_on_slower_networks(ranks, latency, gigabits, expected):
    found = buckets.size_for(ranks, latency, 8e-9 / gigabits)
    assert abs(found - expected) <= 1


def test_buckets_where_the_bytes_take_no_time():
    assert buckets.size_for(4, 1e-3, 0.0) == buckets.BUCKET_BYTES


def test_all_ranks_have_the_same_buckets(ranks):
    def act(comm):
        size = comm.bcast_obj(buckets.bucket_bytes(comm))
        assert (1 << 18) <= size <= (4 << 20)
        return size if comm.inter_size > 1 else buckets.bucket_bytes(comm)

    sizes = ranks(act)
    assert len(set(sizes)) == 1


def test_buckets_of_hooks_are_small_between_nodes(ranks):
    for nodes, size in ranks(lambda c: (c.inter_size, buckets.hooked_bucket_bytes(c))):
        assert size == (1 << 22 if nodes == 1 else 1 << 20)
