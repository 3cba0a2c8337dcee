"""Hogwild: one rank is SGD, several lose no update."""

import time

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import create_communicator
from renga.distributed.asynchronous import create_hogwild_optimizer
from renga.optimizer_hooks import WeightDecay
from renga.optimizers import SGD, MomentumSGD
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_rank_is_sgd_bitwise(dtype):
    def trained(make):
        with renga.using_config("dtype", np.dtype(dtype)):
            model = Classifier()
            optimizer = make(SGD(0.3).setup(model))
        for x, t in batches(5):
            optimizer.update(model, x.astype(dtype), t)
        return parameters(model)

    comm = create_communicator("local")
    expected = trained(lambda optimizer: optimizer)
    for key, x in trained(lambda opt: create_hogwild_optimizer(opt, comm)).items():
        np.testing.assert_array_equal(x, expected[key])


class Counts(renga.Link):
    """A vector, some elements of which each update changes by one."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.x = renga.Parameter(np.zeros(1000, "float32"))


def test_no_update_is_lost(ranks_with_threads):
    """All ranks subtract from the same elements at the same time."""

    def act(comm):
        if not comm.shares_memory() or comm.inter_size > 1:
            with pytest.raises(ValueError, match="expected ranks that share memory"):
                create_hogwild_optimizer(SGD(1.0).setup(Counts()), comm)
            return None
        model = Counts()
        model.x.array[...] = 5
        optimizer = create_hogwild_optimizer(SGD(1.0).setup(model), comm)
        grad = np.zeros(1000, "float32")
        grad[comm.rank % 2 :: 2] = -1
        for _ in range(300):
            model.x.grad = grad
            optimizer.update()
        optimizer.join()
        return model.x.array.copy(), optimizer.t

    for result in (results := ranks_with_threads(act)):
        if result is not None:
            x, t = result
            size = len(results)
            np.testing.assert_array_equal(x[::2], 5 + 300 * ((size + 1) // 2))
            np.testing.assert_array_equal(x[1::2], 5 + 300 * (size // 2))
            assert t == 300


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_train_one_model(ranks):
    def act(comm):
        model = Point("float32", value=float(comm.rank))
        optimizer = create_hogwild_optimizer(SGD(0.05).setup(model), comm)
        for _ in range(60):
            optimizer.update(model, np.ones(11, "float32"))
        optimizer.join()
        return model.vector()

    for x in local.run(act, ranks=ranks):
        np.testing.assert_allclose(x, 1, atol=0.06)


def test_the_array_of_a_peer(ranks_with_threads):
    def act(comm):
        x = comm.window((3, 4))
        x[...] = comm.rank
        comm.barrier()
        shares = comm.shares_memory()
        first = comm.rank - comm.intra_rank
        seen = [
            comm.window_of_peer(x[1:], r)[0, 0] - first
            for r in range(comm.intra_size)
            if shares
        ]
        for call in (
            lambda: comm.window_of_peer(x, comm.intra_size),
            lambda: comm.window_of_peer(np.ones(3), 0),
        ):
            with pytest.raises(ValueError, match="window_of_peer: expected"):
                call()
        comm.barrier()
        return seen, list(range(comm.intra_size)) if shares else []

    for seen, expected in ranks_with_threads(act):
        assert seen == expected


def test_other_optimizers_are_refused():
    comm = create_communicator("local")
    with pytest.raises(TypeError, match="expected an SGD, got MomentumSGD"):
        create_hogwild_optimizer(MomentumSGD().setup(Point()), comm)
    model = Point()
    optimizer = create_hogwild_optimizer(SGD().setup(model), comm)
    optimizer.add_hook(WeightDecay(0.1))
    with pytest.raises(ValueError, match="without hooks"):
        optimizer.update(model, np.zeros(11))


def test_rules_have_rates_of_their_own_or_are_not_enabled():
    comm = create_communicator("local")
    models = [Point(value=1.0), Point(value=1.0)]
    optimizers = [SGD(0.1).setup(model) for model in models]
    for model in models:
        model.a.update_rule.enabled = False
        model.b.update_rule.hyperparam.lr = 0.3
    optimizers[1] = create_hogwild_optimizer(optimizers[1], comm)
    for model, optimizer in zip(models, optimizers):
        optimizer.update(model, np.zeros(11))
    np.testing.assert_array_equal(models[1].vector(), models[0].vector())
    np.testing.assert_allclose(models[1].vector(), [1.0] * 6 + [0.7] * 5, atol=1e-12)
    models[1].b.update_rule.add_hook(WeightDecay(0.1))
    with pytest.raises(ValueError, match="without hooks"):
        optimizers[1].update(models[1], np.zeros(11))


def test_update_rules_of_other_optimizers_are_refused():
    def act(comm):
        model = Point("float32")
        optimizer = create_hogwild_optimizer(SGD(0.05).setup(model), comm)
        optimizer.update(model, np.ones(11, "float32"))
        before = model.vector().copy()
        for param in model.params():
            param.update_rule = MomentumSGD(0.05).create_update_rule()
        with pytest.raises(TypeError, match="update rules of SGD, got MomentumSGDRule"):
            optimizer.update(model, np.ones(11, "float32"))
        np.testing.assert_array_equal(model.vector(), before)

    local.run(act, ranks=1)


def test_no_rank_trains_while_others_evaluate():
    """Statistics, which each rank has of its own batches, are averaged."""

    def act(comm):
        model = renga.Sequential(L.Linear(2, 3), L.BatchNormalization(3))
        optimizer = create_hogwild_optimizer(SGD(0.1).setup(model), comm)
        x = np.random.RandomState(comm.rank).normal(size=(8, 2)).astype("f")

        def update():
            optimizer.update(lambda x: F.sum(model(x) ** 3), x)

        update()
        own = model[1].avg_mean.copy()
        with optimizer.averaged():
            mean, before = model[1].avg_mean.copy(), model[0].W.array.copy()
            if comm.rank == 0:
                time.sleep(0.1)
            is_same = (model[0].W.array == before).all()
        np.testing.assert_array_equal(model[1].avg_mean, own)
        update()
        optimizer.join()
        return own, mean, is_same

    results = local.run(act, ranks=2)
    expected = np.mean([own.astype("d") for own, _, _ in results], axis=0)
    for _, mean, is_same in results:
        np.testing.assert_allclose(mean, expected, 1e-5, 1e-6)
        assert is_same
