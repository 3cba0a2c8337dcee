"""Gossip against its formulas in NumPy, what it keeps, and ranks that go missing."""

import io
import warnings

import numpy as np
import pytest

import renga
from renga.communicators import local, simulated
from renga.distributed import create_communicator
from renga.distributed.asynchronous import (
    Complete,
    ExponentialGraph,
    Ring,
    Weights,
    create_gossip_optimizer,
)
from renga.optimizers import SGD, MomentumSGD
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
    targets,
)

STEPS = 6
METHODS = ["dpsgd", "sgp", "adpsgd", "gosgd"]


def directed(size):
    """A directed graph with columns that sum to 1, and rows that do not."""
    w = np.eye(size) / 2
    for rank in range(size):
        w[(rank + 1) % size, rank] += 1 / 4
        w[0, rank] += 1 / 4
    return Weights(w)


def train(comm, method, graph, lr=0.3, steps=STEPS):
    model = Point(value=0.0 if comm.rank == 0 else 5.0)  # all begin with rank 0's
    optimizer = SGD(lr).setup(model)
    optimizer = create_gossip_optimizer(optimizer, comm, method, graph)
    for target in targets(comm.rank, steps):
        optimizer.update(model, target)
    optimizer.join()
    return model, optimizer


@pytest.mark.parametrize("graph", [Ring(), Complete(), ExponentialGraph()])
def test_dpsgd_is_its_formula(ranks, graph):
    results = ranks(lambda comm: train(comm, "dpsgd", graph)[0].vector())
    size = len(results)
    x = np.zeros((size, 11))
    for step in range(STEPS):
        gradient = x - np.stack([targets(r, STEPS)[step] for r in range(size)])
        x = graph.weights(size, step) @ x - 0.3 * gradient
    np.testing.assert_allclose(np.stack(results), x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [directed, lambda size: ExponentialGraph()])
def test_sgp_is_its_formula_and_its_weights_sum_to_the_ranks(ranks, make):
    def act(comm):
        model, optimizer = train(comm, "sgp", make(comm.size))
        own = model.vector()
        with optimizer.averaged():
            return own, optimizer.weight, model.vector()

    results = ranks(act)
    size = len(results)
    x, weight = np.zeros((size, 11)), np.ones(size)
    for step in range(STEPS):
        z = x / weight[:, None]
        x -= 0.3 * (z - np.stack([targets(r, STEPS)[step] for r in range(size)]))
        w = make(size).weights(size, step)
        x, weight = w @ x, w @ weight
    assert sum(own for _, own, _ in results) == pytest.approx(size, abs=1e-12)
    for rank, (z, own, average) in enumerate(results):
        np.testing.assert_allclose(own, weight[rank], rtol=0, atol=1e-12)
        np.testing.assert_allclose(z, x[rank] / weight[rank], rtol=0, atol=1e-12)
        np.testing.assert_allclose(average, x.mean(axis=0), rtol=0, atol=1e-12)


def exchanged(comm, method, graph, steps):
    """Values before and after exchanges, without gradients."""
    model = Point()
    optimizer = create_gossip_optimizer(
        SGD(0.0).setup(model), comm, method, graph, probability=0.7
    )
    optimizer._begin(None)
    before = targets(comm.rank, 1)[0]
    model.a.array[...], model.b.array[...] = before[:6].reshape(2, 3), before[6:]
    for _ in range(steps):
        optimizer.update(model, np.zeros(11))
    optimizer.join()
    return before, model.vector(), optimizer


@pytest.mark.parametrize("method", METHODS[:3])
@pytest.mark.parametrize("graph", [Ring(), Complete(), ExponentialGraph()])
def test_mixing_keeps_the_mean(some_ranks, method, graph):
    results = some_ranks(lambda comm: exchanged(comm, method, graph, 40)[:2])
    before, after = (np.stack(xs) for xs in zip(*results))
    np.testing.assert_allclose(
        after.mean(axis=0), before.mean(axis=0), rtol=0, atol=1e-12
    )
    if len(results) > 1 and method != "adpsgd":  # threads may run one after another
        assert after.std(axis=0).max() < 0.2 * before.std(axis=0).max()


def test_gosgd_keeps_the_weighted_mean(ranks):
    def act(comm):
        before, own, optimizer = exchanged(comm, "gosgd", Complete(), 30)
        with optimizer.averaged():
            return before, optimizer.weight, own, optimizer.target.vector()

    before, weights, after, averages = (np.stack(x) for x in zip(*ranks(act)))
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    mean = before.mean(axis=0)
    np.testing.assert_allclose(weights @ after, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(averages, np.tile(mean, (len(after), 1)), atol=1e-12)


@pytest.mark.parametrize("method", ["adpsgd", "gosgd"])
def test_averages_have_what_is_on_its_way(method):
    """Without gradients the mean stays."""

    def act(comm):
        model, found = Point(), []
        optimizer = create_gossip_optimizer(
            SGD(0.0).setup(model), comm, method, Complete(), probability=0.7
        )
        optimizer._begin(None)
        before = targets(comm.rank, 1)[0]
        model.a.array[...], model.b.array[...] = before[:6].reshape(2, 3), before[6:]
        for step in range(6):
            for _ in range(step):
                optimizer.update(model, np.zeros(11))
            with optimizer.averaged():
                found.append(model.vector())
        optimizer.update(model, np.zeros(11))
        distance = optimizer.consensus_distance()
        own = model.vector()
        optimizer.join()
        return before, np.stack(found), own, distance

    before, found, own, distances = (np.stack(x) for x in zip(*local.run(act, ranks=3)))
    mean = np.broadcast_to(before.mean(axis=0), found.shape)
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-12)
    expected = np.linalg.norm(own - own.mean(axis=0), axis=1)
    np.testing.assert_allclose(distances, expected, rtol=0, atol=1e-12)
    if method == "adpsgd":
        np.testing.assert_allclose(own.mean(axis=0), mean[0, 0], rtol=0, atol=1e-12)


def test_the_complete_graph_gives_the_mean_of_all_reduce(some_ranks):
    def act(comm):
        x, mixed, _ = exchanged(comm, "dpsgd", Complete(), 1)
        return mixed, comm.all_reduce(x, "mean")

    for mixed, mean in some_ranks(act):
        np.testing.assert_allclose(mixed, mean, rtol=0, atol=1e-15)


@pytest.mark.parametrize("method", ["dpsgd", "sgp"])
def test_the_one_peer_graph_gives_the_mean_after_log2_steps(method):
    def act(comm):
        x, mixed, _ = exchanged(comm, method, ExponentialGraph(), 3)
        return mixed, comm.all_reduce(x, "mean")

    for mixed, mean in simulated.run(act, 8).results:
        np.testing.assert_allclose(mixed, mean, rtol=0, atol=1e-15)


class Run:
    """Model and optimizer, in the order in which an updater saves them."""

    def __init__(self, comm, method, graph=None):
        self.comm, self.model = comm, Classifier()
        self.optimizer = create_gossip_optimizer(
            MomentumSGD(0.2).setup(self.model), comm, method, graph or Ring()
        )

    def serialize(self, serializer):
        self.optimizer.serialize(serializer["optimizer"])
        self.model.serialize(serializer["model"])

    def go(self, steps):
        for x, t in batches(8)[steps]:
            rank, size = self.comm.rank, self.comm.size
            self.optimizer.update(self.model, x[rank::size], t[rank::size])
        return self


@pytest.mark.parametrize("method", ["dpsgd", "sgp"])
def test_resumed_training_has_the_same_bits(some_ranks, method):
    def act(comm):
        first = Run(comm, method).go(slice(3))
        file = io.BytesIO()
        renga.serializers.save_npz(file, first)
        expected = parameters(first.go(slice(3, None)).model)
        file.seek(0)
        second = Run(comm, method)
        renga.serializers.load_npz(file, second)
        return expected, parameters(second.go(slice(3, None)).model)

    for expected, resumed in some_ranks(act):
        for key, x in expected.items():
            np.testing.assert_array_equal(resumed[key], x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("saved, ranks", [(3, 2), (2, 4)])
def test_training_resumes_with_other_numbers_of_ranks(method, saved, ranks):
    """Weights then sum to what they should; ranks without a file get rank 0's."""
    files = {}

    def save(comm):
        run = Run(comm, method, ExponentialGraph()).go(slice(3))
        comm.barrier()
        files[comm.rank] = io.BytesIO()
        renga.serializers.save_npz(files[comm.rank], run)
        run.optimizer.join()

    def load(comm):
        run = Run(comm, method, ExponentialGraph())
        if comm.rank in files:
            files[comm.rank].seek(0)
            renga.serializers.load_npz(files[comm.rank], run)
        loaded = parameters(run.model)
        average = None
        if ranks <= saved:  # all ranks have a file
            with run.optimizer.averaged():
                average = parameters(run.model)
        weight = getattr(run.optimizer, "weight", 1.0)
        x, t = batches(1)[0]
        run.optimizer._begin(lambda: run.model(x, t))
        begun = parameters(run.model)
        weight_begun = getattr(run.optimizer, "weight", 1.0)
        run.go(slice(3, None)).optimizer.join()
        assert all(np.isfinite(x).all() for x in parameters(run.model).values())
        return loaded, weight, average, begun, weight_begun

    local.run(save, ranks=saved)
    results = local.run(load, ranks=ranks)
    weights = np.array([weight for _, weight, *_ in results])
    total = sum(weight for *_, weight in results)
    assert total == pytest.approx(1 if method == "gosgd" else ranks)
    for loaded, _, average, begun, _ in results:
        for key, x in begun.items():
            if average is None:
                np.testing.assert_array_equal(x, results[0][0][key])
                continue
            np.testing.assert_array_equal(x, loaded[key])
            values = np.stack([own[key] for own, *_ in results]).astype("float64")
            expected = np.tensordot(weights / weights.sum(), values, 1)
            np.testing.assert_allclose(average[key], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["adpsgd", "gosgd"])
def test_ranks_may_end_several_times(method):
    """The notices of a rank that is faster are not taken for those of before."""

    def act(comm):
        model = Point()
        optimizer = create_gossip_optimizer(
            SGD(0.1).setup(model), comm, method, Complete(), timeout=5.0
        )
        for target in targets(comm.rank, 2):
            optimizer.update(model, target)
        for _ in range(5):
            optimizer.join()
        return optimizer.ranks_left

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert local.run(act, ranks=3) == [3, 3, 3]


@pytest.mark.parametrize("method", METHODS)
def test_one_rank_alone_is_plain_sgd_bitwise(method):
    comm = create_communicator("local")
    run = Run(comm, method).go(slice(None))
    plain = Run(comm, method)
    for x, t in batches(8):
        plain.optimizer.actual_optimizer.update(plain.model, x, t)
    for key, x in parameters(plain.model).items():
        np.testing.assert_array_equal(parameters(run.model)[key], x)


@pytest.mark.parametrize("method", ["adpsgd", "gosgd"])
def test_a_slow_rank_delays_no_other(method):
    """Without messages that take long, each rank computes all of its time."""

    def act(comm):
        model = Point()
        optimizer = create_gossip_optimizer(
            SGD(0.1).setup(model), comm, method, Complete(), probability=0.5
        )
        optimizer._begin(None)
        steps = 10 if comm.rank == 0 else 40
        begin = comm.clock
        for target in targets(comm.rank, steps):
            comm.advance(0.4 if comm.rank == 0 else 0.1)
            optimizer.update(model, target)
        end = comm.clock
        optimizer.join()
        return end - begin

    for took in simulated.run(act, 8, seconds_of=lambda rank, task: task).results:
        assert 4 <= round(took, 9) < 4.05


@pytest.mark.parametrize("method", METHODS)
def test_the_ranks_that_are_left_go_on(method):
    """Ranks stop at random moments, without a word."""
    chance = np.random.RandomState(METHODS.index(method))

    def act(comm, deaths):
        model = Point()
        optimizer = create_gossip_optimizer(
            SGD(0.3).setup(model), comm, method, Complete(), 1.0, probability=0.5
        )
        for step, target in enumerate(targets(0, 30)):
            if deaths.get(comm.rank) == step:
                return None
            comm.advance(0.01)
            optimizer.update(model, target)
        optimizer.join()
        return optimizer.ranks_left, model.vector()

    for _ in range(10):
        killed = chance.choice(6, chance.randint(1, 5), replace=False)
        deaths = {int(rank): int(chance.randint(1, 20)) for rank in killed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each loss
            outcome = simulated.run(
                lambda comm, deaths=deaths: act(comm, deaths),
                6,
                seconds_of=lambda rank, task: task,
            )
        for rank, result in enumerate(outcome.results):
            assert (result is None) == (rank in deaths)
            if result is not None:
                assert result[0] == 6 - len(deaths)
                assert np.isfinite(result[1]).all()


def test_a_lost_rank_is_named():
    def act(comm):
        model = Point()
        optimizer = create_gossip_optimizer(
            SGD(0.3).setup(model), comm, "dpsgd", Complete(), timeout=0.01
        )
        optimizer.update(model, np.zeros(11))
        if comm.rank == 0:
            with pytest.warns(UserWarning, match="rank 0 has lost rank 1; 1 of 2"):
                optimizer.update(model, np.zeros(11))

    simulated.run(act, 2)


def test_observations(some_ranks):
    def act(comm):
        return train(comm, "dpsgd", Ring())[1].observe()

    for numbers in (results := some_ranks(act)):
        assert numbers["ranks_left"] == len(results)
        peers = min(len(results) - 1, 2)
        # A header of 160 bytes before the tuple, and before the array of 11 numbers; in
        # the end, one before an empty tuple to each other rank.
        notices = (len(results) - 1) * 160
        assert numbers["bytes"] == STEPS * peers * (160 + 160 + 88) + notices


@pytest.mark.parametrize(
    "method, graph, message",
    [
        ("dpsgd", directed(3), "rows and columns"),
        ("sgp", Weights(np.eye(2)), "expected 2 ranks, got 3"),
    ],
)
def test_invalid_options_are_refused(method, graph, message):
    def act(comm):
        with pytest.raises(ValueError, match=message):
            create_gossip_optimizer(SGD().setup(Point()), comm, method, graph)

    local.run(act, ranks=3)
