"""Workers that average their gradients and push as one."""

import math

import numpy as np
import pytest

from renga.communicators import local, simulated
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizers import SGD, MomentumSGD
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
    targets,
)
from tests.parallel.asynchronous.server.points import points, speeds


def trained(comm, make, first=0, samples=24):
    """Parameters and velocities after six updates; ``first``: the rank that computes
    first."""
    model = Classifier(seed=abs(comm.rank - first))
    optimizer = make(MomentumSGD(0.1).setup(model), comm)
    if not getattr(optimizer, "is_worker", True):
        return optimizer.serve()
    for x, t in batches(6, samples):
        part = slice(comm.rank - first, None, comm.size - first)
        optimizer.update(model, x[part], t[part])
    if hasattr(optimizer, "join"):
        optimizer.join()
    return {**parameters(model), **velocities(model)}


def velocities(model):
    params = model.namedparams()
    return {f"{name} v": param.update_rule.state["v"] for name, param in params}


def synchronous(ranks, samples=24):
    return local.run(
        lambda comm: trained(comm, create_multi_node_optimizer, 0, samples), ranks=ranks
    )[0]


@pytest.mark.parametrize("leaf", [1, 2, 4])
def test_without_staleness_leaves_are_synchronous_training_bitwise(leaf):
    """Sums of pairs are the same in a leaf and beyond it."""
    results = local.run(
        lambda comm: trained(
            comm, lambda opt, comm: create_server_optimizer(opt, comm, 0, leaf=leaf)
        ),
        ranks=4,
    )
    for key, x in synchronous(4).items():
        for served in results:
            np.testing.assert_array_equal(served[key], x)


@pytest.mark.parametrize("leaf", [1, 2, 4])
@pytest.mark.parametrize("samples", [21, 3])  # 6, 5, 5, 5, and none for the last rank
@pytest.mark.filterwarnings("ignore:.*got a batch of one sample")
def test_every_sample_counts_alike(leaf, samples):
    def rank(comm):
        return trained(
            comm,
            lambda opt, comm: create_server_optimizer(opt, comm, 0, leaf=leaf),
            samples=samples,
        )

    expected = synchronous(4, samples)
    for served in local.run(rank, ranks=4):
        for key, x in expected.items():
            np.testing.assert_allclose(served[key], x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("leaf", [2, 3, 8])  # 8: one leaf of all six
def test_leaves_with_a_server_of_their_own(leaf):
    outcome = simulated.run(
        lambda comm: trained(
            comm,
            lambda opt, comm: create_server_optimizer(
                opt, comm, 0, servers=1, leaf=leaf
            ),
            first=1,
        ),
        7,
    )
    for key, x in synchronous(6).items():
        for served in outcome.results[1:]:
            np.testing.assert_allclose(served[key], x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("staleness", [1, math.inf])
def test_the_log_of_leaves_replays_to_the_same_bits(staleness):
    outcome = simulated.run(
        lambda comm: points(comm, staleness, leaf=2), 7, seconds_of=speeds
    )
    (logs, observed, _), *workers = outcome.results
    log = logs[0]
    assert len(log) == 3 * 20  # a push for each leaf
    assert {entry.worker for entry in log} == {1, 3, 5}
    assert max(i - entry.version for i, entry in enumerate(log)) > 1
    assert observed["workers_left"] == 6
    model = Point()
    optimizer = SGD(0.1).setup(model)
    versions = [model.vector()]
    for entry in log:
        stale = versions[entry.version]
        first, second = (
            stale - targets(entry.worker + i, 20)[entry.clock - 1] for i in (0, 1)
        )
        gradient = (first + second) / 2
        model.a.grad, model.b.grad = gradient[:6].reshape(2, 3), gradient[6:]
        optimizer.lr = 0.1 * entry.rate
        optimizer.update()
        versions.append(model.vector())
    for _, t, x in workers:
        assert t == 20
        np.testing.assert_array_equal(x, versions[-1])


def test_leaves_send_their_servers_less():
    def act(comm, leaf):
        points(comm, 2, leaf=leaf)
        return comm.traffic.messages if comm.rank == 0 else None

    alone, together = (
        simulated.run(lambda comm, n=leaf: act(comm, n), 9, seconds_of=speeds)
        for leaf in (1, 4)
    )
    assert together.results[0] < 0.4 * alone.results[0]


def test_any_worker_of_a_leaf_sees_the_newest_parameters():
    """The last worker waits while the other leaf updates, then asks."""

    def act(comm):
        model = Point(value=1.0)
        optimizer = create_server_optimizer(
            SGD(0.5).setup(model), comm, math.inf, servers=1, leaf=2
        )
        if optimizer.is_server:
            return optimizer.serve()
        for _ in range(3 if comm.rank < 3 else 1):
            optimizer.update(model, np.zeros(11))
        seen = None
        if comm.rank == 4:
            comm.compute(1.0)
            with optimizer.averaged():
                seen = model.vector()
        optimizer.join()
        return model.vector() if seen is None else seen

    results = simulated.run(act, 5).results[1:]
    for x in results:
        np.testing.assert_array_equal(x, results[0])
    assert (abs(results[0]) < 0.5).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"leaf": 0}, "leaf"),
        ({"leaf": 2}, "leaves of equally many workers, got 2 of 3"),
        ({"leaf": 3, "rows": {"/a": lambda x: x}}, "no rows of parameters with leaves"),
    ],
)
def test_invalid_leaves_are_refused(options, message):
    def act(comm):
        with pytest.raises(ValueError, match=message):
            create_server_optimizer(SGD().setup(Point()), comm, **options)

    local.run(act, ranks=3)


def test_a_worker_of_a_leaf_cannot_enter_alone():
    def act(comm):
        optimizer = create_server_optimizer(SGD().setup(Point()), comm, leaf=2)
        with pytest.raises(RuntimeError, match="push alone, got leaves of 2"):
            optimizer.enter()

    local.run(act, ranks=2)
