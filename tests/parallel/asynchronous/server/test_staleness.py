"""Stale gradients: exact updates, and how stale they may be."""

import collections
import math

import numpy as np
import pytest

from renga.communicators import simulated
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizers import SGD, Adam, MomentumSGD
from tests.parallel.asynchronous.quadratics import Point, targets
from tests.parallel.asynchronous.server.points import points, speeds


def replayed(log, make):
    """Training in one process by the log of one shard."""
    model = Point()
    optimizer = make().setup(model)
    rate = optimizer.lr
    versions = [[p.array.copy() for p in model.params()]]
    for entry in log:
        for param, x in zip(model.params(), versions[entry.version]):
            param.array[...] = x
        model.cleargrads()
        model(targets(entry.worker, 20)[entry.clock - 1]).backward()
        for param, x in zip(model.params(), versions[-1]):
            param.array[...] = x
        optimizer.lr = rate * entry.rate
        optimizer.update()
        versions.append([p.array.copy() for p in model.params()])
    return model.vector()


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("staleness", [1, 4, math.inf])
def test_stale_training_is_the_serial_replay_of_its_log_bitwise(staleness, aware):
    def make():
        return MomentumSGD(0.1)

    outcome = simulated.run(
        lambda comm: points(comm, staleness, aware=aware, make=make),
        5,
        seconds_of=speeds,
    )
    (logs, observed, _), *workers = outcome.results
    assert len(logs[0]) == 4 * 20
    lags = [i - entry.version for i, entry in enumerate(logs[0])]
    for entry, lag in zip(logs[0], lags):
        assert entry.rate == (1 / lag if aware and lag else 1)
    assert max(lags) > 1
    assert observed["version_lag"] == pytest.approx(np.mean(lags))
    x = replayed(logs[0], make)
    for histogram, t, final in workers:
        np.testing.assert_array_equal(final, x)
        assert sum(histogram.values()) == t == 20
        assert max(histogram) <= staleness


def test_staleness_reaches_its_bound_and_never_exceeds_it():
    for staleness in (0, 1, 2, 5):
        outcome = simulated.run(
            lambda comm, s=staleness: points(comm, s), 5, seconds_of=speeds
        )
        found = collections.Counter()
        for histogram, _, _ in outcome.results[1:]:
            found.update(histogram)
        assert max(found) == staleness
        # The others wait for the slow rank: 20 steps of 0.4 s.
        assert 8 <= outcome.seconds[-1] < 8.2


def test_without_a_bound_no_worker_waits():
    outcome = simulated.run(
        lambda comm: finish_of(comm, math.inf), 5, seconds_of=speeds
    )
    for rank, end in enumerate(outcome.results[1:], 1):
        assert end == pytest.approx(20 * speeds(rank, ""), rel=0.01)


def finish_of(comm, staleness):
    """The time from the first to the last update of a worker."""
    model = Point()
    optimizer = create_server_optimizer(
        SGD(0.1).setup(model), comm, staleness, servers=1
    )
    if optimizer.is_server:
        return optimizer.serve()
    optimizer.update(model, targets(comm.rank, 1)[0])
    begin = comm.clock
    for target in targets(comm.rank, 20):
        comm.advance("step")
        optimizer.update(model, target)
    end = comm.clock
    optimizer.join()
    return end - begin


@pytest.mark.parametrize("shards", [2, 3, 11])
def test_shards_compute_what_one_does_bitwise(shards):
    """In the order of one server, which alone decides on the versions."""
    for staleness in (0, 3, math.inf):
        one, several = (
            simulated.run(
                lambda comm, s=staleness, n=count: points(
                    comm, s, shards=n, make=lambda: Adam(0.1)
                ),
                4,
                # Times that the messages of shards do not change the order of.
                seconds_of=lambda rank, task: 1.0 + 0.1 * rank,
            )
            for count in (1, shards)
        )
        for (_, _, x), (_, _, y) in zip(one.results[1:], several.results[1:]):
            np.testing.assert_array_equal(x, y)
        logs = several.results[0][0]
        assert len(logs) == shards
        assert all(log == one.results[0][0][0] for log in logs.values())


@pytest.mark.parametrize("staleness", [2, math.inf])
def test_threads_and_processes_train(ranks_with_threads, staleness):
    """Whatever their order: all gradients are used, and all end with one model."""

    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD(0.1).setup(model), comm, staleness)
        for target in targets(0, 30):
            optimizer.update(model, 0 * target + 1)
        assert max(optimizer.staleness_histogram()) <= staleness
        updates = sum(len(log) for log in optimizer.logs.values())
        optimizer.join()
        return sum(map(len, optimizer.logs.values())), updates, model.vector()

    results = ranks_with_threads(act)
    for count, before, x in results:
        assert count == 30 * len(results) >= before
        np.testing.assert_array_equal(x, results[0][2])
        np.testing.assert_allclose(x, 1, atol=0.3)


def test_evaluation_sees_the_newest_parameters():
    """Worker 2 waits while worker 1 updates, then asks."""

    def act(comm):
        model = Point(value=1.0)
        optimizer = create_server_optimizer(
            SGD(0.5).setup(model), comm, math.inf, servers=1
        )
        if optimizer.is_server:
            return optimizer.serve()
        if comm.rank == 1:
            for _ in range(3):
                optimizer.update(model, np.zeros(11))
        else:
            optimizer.update(model, np.zeros(11))
            comm.compute(1.0)
            with optimizer.averaged():
                seen = model.vector()
        optimizer.join()
        return model.vector() if comm.rank == 1 else seen

    _, final, seen = simulated.run(act, 3).results
    np.testing.assert_array_equal(final, seen)
    assert (seen < 0.5).all()
