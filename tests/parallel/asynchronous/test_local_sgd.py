"""Local SGD, DiLoCo and elastic averaging against their formulas."""

import io

import numpy as np
import pytest

import renga
from renga.communicators import local
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import (
    create_elastic_averaging_optimizer,
    create_local_sgd_optimizer,
)
from renga.optimizers import SGD, MomentumSGD, NesterovAG
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
    targets,
)

STEPS = 7
OUTERS = {
    "mean": (None, 1.0, 0.0, False),
    "momentum": (lambda: MomentumSGD(0.8, 0.6), 0.8, 0.6, False),
    "nesterov": (lambda: NesterovAG(0.7, 0.9), 0.7, 0.9, True),
}


def expected_local_sgd(size, every, lr, momentum, nesterov):
    """All ranks' parameters in NumPy."""
    x = np.zeros((size, 11))
    drawn = np.stack([targets(r, STEPS) for r in range(size)])
    anchor, v = np.zeros(11), np.zeros(11)
    for step in range(STEPS):
        x -= 0.3 * (x - drawn[:, step])
        if (step + 1) % every == 0:
            gradient = anchor - x.mean(axis=0)
            v = momentum * v - lr * gradient
            ahead = momentum**2 * v - (1 + momentum) * lr * gradient  # as Chainer's
            anchor = anchor + (ahead if nesterov else v)
            x[:] = anchor
    return x


@pytest.mark.parametrize("name", OUTERS)
@pytest.mark.parametrize("every", [1, 3])
def test_local_sgd_is_its_formula(ranks, name, every):
    make, lr, momentum, nesterov = OUTERS[name]

    def train(comm):
        # The parameters of rank 0 are the ones to begin with.
        model = Point(value=0.0 if comm.rank == 0 else 5.0)
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, every, outer=make and make()
        )
        for target in targets(comm.rank, STEPS):
            optimizer.update(model, target)
        own = model.vector()
        distance = optimizer.consensus_distance()
        with optimizer.averaged():
            average = model.vector()
        np.testing.assert_array_equal(model.vector(), own)
        return own, average, distance

    results = ranks(train)
    x = expected_local_sgd(len(results), every, lr, momentum, nesterov)
    for rank, (own, average, distance) in enumerate(results):
        np.testing.assert_allclose(own, x[rank], rtol=0, atol=1e-12)
        np.testing.assert_allclose(average, x.mean(axis=0), rtol=0, atol=1e-12)
        expected = np.linalg.norm(x[rank] - x.mean(axis=0))
        np.testing.assert_allclose(distance, expected, rtol=0, atol=1e-12)


def trained(comm, make, steps=STEPS, **options):
    """Parameters after training in equal shares of each batch."""
    model = Classifier(seed=comm.rank)
    optimizer = make(SGD(0.5).setup(model), comm, **options)
    for x, t in batches(steps):
        optimizer.update(model, x[comm.rank :: comm.size], t[comm.rank :: comm.size])
    return parameters(model)


def test_local_sgd_of_one_step_is_synchronous(some_ranks):
    def act(comm):
        return (
            trained(comm, create_local_sgd_optimizer, every=1),
            trained(comm, create_multi_node_optimizer),
        )

    for late, synchronous in some_ranks(act):
        for name, x in synchronous.items():
            np.testing.assert_allclose(late[name], x, rtol=0, atol=1e-6)


def test_diloco_with_outer_sgd_of_rate_1_is_local_sgd_bitwise(some_ranks):
    def act(comm):
        return (
            trained(comm, create_local_sgd_optimizer, every=3),
            trained(comm, create_local_sgd_optimizer, every=3, outer=SGD(1.0)),
        )

    for plain, diloco in some_ranks(act):
        for name, x in plain.items():
            np.testing.assert_array_equal(diloco[name], x)


def test_updates_before_begin_are_synchronous_bitwise(some_ranks):
    def act(comm):
        late = (100, "epoch")
        return (
            trained(comm, create_local_sgd_optimizer, begin=late),
            trained(comm, create_multi_node_optimizer),
        )

    for late, synchronous in some_ranks(act):
        for name, x in synchronous.items():
            np.testing.assert_array_equal(late[name], x)


def test_it_begins_after_the_first_updates(some_ranks):
    def train(comm):
        model = Point()
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, every=2, begin=(2, "iteration")
        )
        for target in targets(comm.rank, STEPS):
            optimizer.update(model, target)
        return model.vector()

    results = some_ranks(train)
    x = np.zeros((len(results), 11))
    for step in range(STEPS):
        drawn = np.stack([targets(r, STEPS)[step] for r in range(len(results))])
        x -= 0.3 * (x - drawn)
        if step < 2 or step in (3, 5):
            x[:] = x.mean(axis=0)
    np.testing.assert_allclose(np.stack(results), x, rtol=0, atol=1e-12)


def averaged_now_and_then(counts, begin, loaded=0):
    """Parameters after each rank's updates: synchronous ones, then pairs of them."""
    x, samples = np.zeros((2, 11)), np.zeros(2)
    drawn = np.stack([targets(r, STEPS) for r in range(2)])
    for step in range(max(counts)):
        active = np.array([step < count for count in counts])
        move = 0.3 * (x - drawn[:, step])
        if loaded + step < begin:
            x -= move[active].mean(axis=0)
            continue
        x[active] -= move[active]
        samples += active
        if samples.max() == 2 or step + 1 == max(counts):
            x[:] = np.average(x, axis=0, weights=samples)
            samples[:] = 0
    return x


@pytest.mark.parametrize("counts", [(0, 5), (1, 6), (3, 6), (6, 2), (2, 1), (4, 6)])
def test_a_rank_may_join_before_the_others_begin(counts):
    def act(comm):
        model = Point(value=float(comm.rank))
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, every=2, begin=(3, "iteration")
        )
        for target in targets(comm.rank, STEPS)[: counts[comm.rank]]:
            optimizer.update(model, target)
        optimizer.join()
        optimizer.join()
        return model.vector()

    expected = averaged_now_and_then(counts, 3)
    np.testing.assert_allclose(local.run(act, ranks=2), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epochs", [(2, 3), (4, 2), (3, 9)])
def test_all_ranks_begin_when_one_has_completed_the_epoch(epochs):
    def act(comm):
        model = Point()
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, every=2, begin=(1, "epoch")
        )
        for step, target in enumerate(targets(comm.rank, STEPS), 1):
            optimizer.update(model, target)
            if step % epochs[comm.rank] == 0:
                optimizer.new_epoch()
        optimizer.join()
        return model.vector()

    expected = averaged_now_and_then((STEPS, STEPS), min(epochs))
    np.testing.assert_allclose(local.run(act, ranks=2), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loaded", [1, 3])
def test_all_ranks_begin_when_rank_0_alone_has_loaded_the_updates(loaded):
    def act(comm):
        model = Point()
        optimizer = SGD(0.3).setup(model)
        if comm.rank == 0:
            optimizer.t = loaded
            file = io.BytesIO()
            renga.serializers.save_npz(file, optimizer)
            optimizer.t = 0
        optimizer = create_local_sgd_optimizer(
            optimizer, comm, every=2, begin=(3, "iteration")
        )
        if comm.rank == 0:
            file.seek(0)
            renga.serializers.load_npz(file, optimizer.actual_optimizer)
        for target in targets(comm.rank, STEPS):
            optimizer.update(model, target)
        optimizer.join()
        return model.vector()

    expected = averaged_now_and_then((STEPS, STEPS), 3, loaded)
    np.testing.assert_allclose(local.run(act, ranks=2), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("every", [1, 3])
def test_elastic_averaging_is_its_formula_and_keeps_the_sum(ranks, every):
    def train(comm):
        model = Point()
        optimizer = create_elastic_averaging_optimizer(
            SGD(0.3).setup(model), comm, every, beta=0.6
        )
        for target in targets(comm.rank, STEPS):
            optimizer.update(model, target)
        own = model.vector()
        with optimizer.averaged():
            center = model.vector()
        # One more elastic step, without a local update.
        total = comm.all_reduce(own) + center
        optimizer._pull()
        total -= comm.all_reduce(model.vector()) + optimizer.center()[0]
        return own, center, abs(total).max()

    results = ranks(train)
    size = len(results)
    x, center, alpha = np.zeros((size, 11)), np.zeros(11), 0.6 / size
    for step in range(STEPS):
        x -= 0.3 * (x - np.stack([targets(r, STEPS)[step] for r in range(size)]))
        if (step + 1) % every == 0:
            pull = alpha * (x - center)
            x, center = x - pull, center + pull.sum(axis=0)
    for rank, (own, shown, error) in enumerate(results):
        np.testing.assert_allclose(own, x[rank], rtol=0, atol=1e-12)
        np.testing.assert_allclose(shown, center, rtol=0, atol=1e-12)
        assert error <= 1e-12


MAKE = {
    "local": lambda opt, comm: create_local_sgd_optimizer(
        opt, comm, every=3, outer=NesterovAG(0.7, 0.9)
    ),
    "post-local": lambda opt, comm: create_local_sgd_optimizer(
        opt, comm, every=3, begin=(4, "iteration")
    ),
    "elastic": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 3),
}


class Run:
    """Model and optimizer, in the order in which an updater saves them."""

    def __init__(self, comm, make):
        self.comm, self.model = comm, Classifier()
        self.optimizer = make(MomentumSGD(0.2).setup(self.model), comm)

    def serialize(self, serializer):
        self.optimizer.serialize(serializer["optimizer"])
        self.model.serialize(serializer["model"])

    def go(self, steps):
        for x, t in batches(10)[steps]:
            rank, size = self.comm.rank, self.comm.size
            self.optimizer.update(self.model, x[rank::size], t[rank::size])
        return self


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("stop", [2, 5])
def test_resumed_training_has_the_same_bits(some_ranks, name, stop):
    def train(comm):
        first = Run(comm, MAKE[name]).go(slice(stop))
        file = io.BytesIO()
        renga.serializers.save_npz(file, first)
        expected = parameters(first.go(slice(stop, None)).model)
        file.seek(0)
        second = Run(comm, MAKE[name])
        renga.serializers.load_npz(file, second)
        return expected, parameters(second.go(slice(stop, None)).model)

    for expected, resumed in some_ranks(train):
        for key, x in expected.items():
            np.testing.assert_array_equal(resumed[key], x)


def test_the_end_of_training_moves_nothing_after_an_average(some_ranks):
    """The outer momentum would, which has moved it in that average."""

    def train(comm):
        model = Point()
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, every=3, outer=NesterovAG(0.7, 0.9)
        )
        found = []
        for count in (3, 1):
            for target in targets(comm.rank, count):
                optimizer.update(model, target)
            found.append(model.vector())
            for _ in range(2):
                optimizer.join()
                found.append(model.vector())
        return found

    for begun, first, second, alone, mean, last in some_ranks(train):
        np.testing.assert_array_equal(first, begun)
        np.testing.assert_array_equal(second, begun)
        assert (mean != alone).all()
        np.testing.assert_array_equal(last, mean)
