"""Models of several optimizers on the same ranks begin alike and keep statistics."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import (
    asynchronous,
    create_groups,
    create_multi_node_optimizer,
)
from renga.optimizers import SGD

MAKE = {
    "multi-node": create_multi_node_optimizer,
    "group": lambda optimizer, comm: create_multi_node_optimizer(
        optimizer, create_groups(comm, channel=1).data
    ),
    "local SGD": asynchronous.create_local_sgd_optimizer,
    "elastic averaging": asynchronous.create_elastic_averaging_optimizer,
    "D-PSGD": lambda optimizer, comm: asynchronous.create_gossip_optimizer(
        optimizer, comm, "dpsgd", asynchronous.Complete()
    ),
    "server": lambda optimizer, comm: asynchronous.create_server_optimizer(
        optimizer, comm, staleness=0
    ),
}


class Factor(renga.Link):
    def __init__(self, value):
        super().__init__()
        with self.init_scope():
            self.w = renga.Parameter(np.array([value]))

    def forward(self, x):
        return self.w * x


def made(name, comm, *models):
    options = {"local SGD": (1,), "elastic averaging": (1,)}.get(name, ())
    return [MAKE[name](SGD(0.1).setup(model), comm, *options) for model in models]


@pytest.mark.parametrize("name", MAKE)
def test_a_loss_has_rank_0s_models_of_other_optimizers(name):
    def act(comm):
        models = first, *others = [Factor(x + comm.rank) for x in (1.0, 3.0, 2.0)]
        optimizers = made(name, comm, *models)
        seen = []

        def loss():
            seen.append([float(other.w.array[0]) for other in others])
            return F.sum(others[1](others[0](first(np.ones(1)))))

        optimizers[0].update(loss, samples=1)
        for optimizer in optimizers:
            optimizer.join()
        return [*seen[0], *(float(model.w.array[0]) for model in models)]

    # A step of 0.1 from 1; elastic averaging pulls it back by 0.9 / 2 of the way.
    moved = 1 - 0.1 * 6 * (0.55 if name == "elastic averaging" else 1)
    for found in local.run(act, ranks=2):
        np.testing.assert_allclose(found, (3, 2, moved, 3, 2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MAKE)
def test_a_model_of_another_optimizer_without_a_shape(name):
    def act(comm):
        first = Factor(1.0)
        fill = renga.initializers.Constant(3.0 + comm.rank, dtype=np.float64)
        second = L.Linear(None, 1, initialW=fill, nobias=True)
        optimizers = made(name, comm, first, second)
        seen = []

        def loss():
            y = F.sum(second(first(np.ones((1, 1)))))
            seen.append(float(second.W.array[0, 0]))
            return y

        optimizers[0].update(loss, samples=1)
        for optimizer in optimizers:
            optimizer.join()
        return seen[-1], float(second.W.array[0, 0])

    assert local.run(act, ranks=2) == [(3.0, 3.0)] * 2


def batch(rank):
    """Of mean ``rank + 2``."""
    return np.array([[1.0], [3.0]]) + rank


@pytest.mark.parametrize("name", MAKE)
def test_statistics_of_a_pass_before_the_first_update_are_kept(name):
    def act(comm):
        model = L.BatchNormalization(1, dtype=np.float64)
        (optimizer,) = made(name, comm, model)
        model.cleargrads()
        F.sum(model(batch(comm.rank)) ** 2).backward()
        optimizer.update()
        mean = float(model.avg_mean[0])
        optimizer.join()
        return mean

    for rank, mean in enumerate(local.run(act, ranks=2)):
        assert mean == pytest.approx(0.1 * (rank + 2), abs=1e-12)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("begins_alike", [True, False])
def test_statistics_of_a_pass_for_another_model_are_kept(name, begins_alike):
    def act(comm):
        first, second = Factor(1.0), L.BatchNormalization(1, dtype=np.float64)
        if not begins_alike:
            second.gamma.array[...] = 1 + comm.rank
            second.avg_mean[...] = comm.rank
        optimizers = made(name, comm, first, second)
        x = batch(comm.rank)
        for optimizer in optimizers:
            optimizer.update(
                lambda: F.sum(second(x) ** 2) + F.sum(first(np.ones(1))), samples=2
            )
        mean = float(second.avg_mean[0])
        for optimizer in optimizers:
            optimizer.join()
        return mean

    for rank, mean in enumerate(local.run(act, ranks=2)):
        assert mean == pytest.approx((0.1 + 0.09) * (rank + 2), abs=1e-12)


def test_models_that_have_begun_are_left_alone():
    def act(comm):
        first, second = Factor(1.0), Factor(5.0)
        create = asynchronous.create_local_sgd_optimizer
        optimizers = [create(SGD(0.1).setup(m), comm, 10) for m in (first, second)]
        x = np.ones(1) * (comm.rank + 1)
        for optimizer, model in zip(optimizers, (first, second)):
            optimizer.update(lambda model=model: F.sum(model(x)), samples=1)
        return float(first.w.array[0]), float(second.w.array[0])

    found = local.run(act, ranks=2)
    np.testing.assert_allclose(found, [(0.9, 4.9), (0.8, 4.8)], rtol=0, atol=1e-12)


def test_models_of_other_groups_are_left_alone():
    """On a grid whose optimizers train on its rows and on its columns."""

    def act(comm):
        rows = comm.split(comm.rank // 2, comm.rank)
        columns = comm.split(comm.rank % 2, comm.rank)
        first, second = Factor(1.0), Factor(3.0 + comm.rank)
        optimizers = [
            create_multi_node_optimizer(SGD(0.1).setup(model), group)
            for model, group in ((first, rows), (second, columns))
        ]
        optimizers[0].update(lambda: F.sum(first(np.ones(1))), samples=1)
        return float(second.w.array[0])

    assert local.run(act, ranks=4) == [3.0, 4.0, 5.0, 6.0]
