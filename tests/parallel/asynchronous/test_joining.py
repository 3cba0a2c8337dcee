"""Ranks with other numbers of samples or updates, and what they have in the end."""

import numpy as np
import pytest

import renga
from renga.communicators import local, simulated
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import (
    Ring,
    create_elastic_averaging_optimizer,
    create_gossip_optimizer,
    create_hogwild_optimizer,
    create_local_sgd_optimizer,
    create_server_optimizer,
)
from renga.optimizers import SGD, Adam, MomentumSGD, NesterovAG
from renga.parallel.data.extensions import rounds
from tests.parallel.asynchronous import programs
from tests.parallel.asynchronous.quadratics import Point, parameters, targets

MAKE = {
    "server": lambda opt, comm: create_server_optimizer(opt, comm, 0),
    "stale": lambda opt, comm: create_server_optimizer(opt, comm, 2),
    "local": lambda opt, comm: create_local_sgd_optimizer(opt, comm, 2),
    "elastic": lambda opt, comm: create_elastic_averaging_optimizer(opt, comm, 2),
    "dpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "dpsgd", Ring()),
    "sgp": lambda opt, comm: create_gossip_optimizer(opt, comm, "sgp"),
    "adpsgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "adpsgd"),
    "gosgd": lambda opt, comm: create_gossip_optimizer(opt, comm, "gosgd"),
    "hogwild": create_hogwild_optimizer,
}


def loss_of(model, batch):
    """The mean distance of the parameters to the samples."""
    return sum((model(sample) for sample in batch), renga.Variable(np.zeros(()))) / len(
        batch
    )


@pytest.mark.parametrize("shares", [(1, 5), (4, 2), (6, 0)])
@pytest.mark.parametrize("name", ["server", "local"])
def test_uneven_batches_are_synchronous_training(name, shares):
    """Weighted by samples; of dictionaries, and told by the caller."""

    def act(comm, make):
        model = Point()
        optimizer = make(SGD(0.3).setup(model), comm)
        for step, samples in enumerate(np.stack([targets(r, 4) for r in range(6)], 1)):
            begin = sum(shares[: comm.rank])
            own = samples[begin : begin + shares[comm.rank]]
            if not len(own):

                def loss(sample=samples[0]):
                    return (model(sample) - model(sample)) / 0  # not a number

                with np.errstate(invalid="ignore", divide="ignore"):
                    optimizer.update(loss, samples=0)
            elif step % 2:
                optimizer.update(lambda batch: loss_of(model, batch["x"]), {"x": own})
            else:
                optimizer.samples = len(own)
                optimizer.update(lambda own=own: loss_of(model, own))
                optimizer.samples = None
        optimizer.join()
        return model.vector()

    def local_sgd(optimizer, comm):
        return create_local_sgd_optimizer(optimizer, comm, 1)

    make = local_sgd if name == "local" else MAKE[name]
    x = np.zeros(11)
    for samples in np.stack([targets(r, 4) for r in range(6)], 1):
        x -= 0.3 * (x - samples.mean(axis=0))
    for found in local.run(act, make, ranks=2):
        np.testing.assert_allclose(found, x, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:gossip. rank 1 has lost rank 0")
@pytest.mark.parametrize("name", MAKE)
def test_a_mean_over_ranks_does_not_wait_for_one_that_has_ended(monkeypatch, name):
    monkeypatch.setattr(rounds, "_SECONDS", 0.01)

    def act(comm):
        optimizer = MAKE[name](SGD(0.1).setup(Point()), comm)
        optimizer.update(optimizer.target, targets(0, 1)[0])
        optimizer.consensus_distance()
        if comm.rank == 1:
            optimizer.join()
        optimizer.consensus_distance()

    expected = "got 2 times on rank 0 and 1 times on rank 1, where it has ended"
    with pytest.raises(RuntimeError, match=expected):
        local.run(act, ranks=2)


@pytest.mark.parametrize("updates", [(5, 2), (0, 3)])
@pytest.mark.parametrize("name", MAKE)
def test_a_rank_may_have_fewer_updates_than_others(name, updates):
    def act(comm):
        model = Point(value=float(comm.rank))
        optimizer = MAKE[name](SGD(0.1).setup(model), comm)
        for target in targets(comm.rank, updates[comm.rank]):
            optimizer.update(model, target)
        optimizer.join()
        optimizer.join()
        return model.vector()

    results = local.run(act, ranks=2)
    assert all(np.isfinite(x).all() for x in results)
    if name in ("server", "stale", "local", "hogwild"):
        np.testing.assert_array_equal(*results)
    if name == "server":
        x = np.zeros(11)
        for step in range(max(updates)):
            drawn = [targets(r, updates[r])[step] for r in (0, 1) if step < updates[r]]
            x -= 0.1 * (x - np.mean(drawn, axis=0))
        np.testing.assert_allclose(results[0], x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["server", "stale"])
def test_states_come_home_and_training_goes_on_with_them(name):
    """With momentum: as without the end in between."""

    def act(comm, ends):
        model = Point()
        optimizer = MAKE[name](MomentumSGD(0.1).setup(model), comm)
        for step, target in enumerate(targets(0, 6)):
            optimizer.update(model, target)
            if step == 2 and ends:
                optimizer.join()
                file = programs.saved(optimizer)
                np.testing.assert_allclose(file["a/v"], velocity[:6].reshape(2, 3))
                assert file["a/t"] == file["t"] == 3
        optimizer.join()
        return model.vector()

    x, velocity = np.zeros(11), np.zeros(11)
    for target in targets(0, 3):
        velocity = 0.9 * velocity - 0.1 * (x - target)
        x = x + velocity
    # A single rank is never stale in shared memory.
    ranks = 1 if name == "stale" else 2
    for found, expected in zip(
        local.run(act, True, ranks=ranks), local.run(act, False, ranks=ranks)
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("servers", [1, 2])
def test_ranks_that_only_serve_end_with_the_results(servers):
    def act(comm):
        with programs.float64():
            model = programs.Net(comm.rank)
            optimizer = create_server_optimizer(
                Adam(0.02).setup(model), comm, 0, servers=servers
            )
            if optimizer.is_server:
                optimizer.serve()
            else:
                for step in range(3):
                    optimizer.update(model.loss, *programs.data(step))
                optimizer.join()
        return programs.saved(model), programs.saved(optimizer)

    results = simulated.run(act, servers + 2).results
    for found in results:
        for got, wanted in zip(found, results[-1]):
            assert got.keys() == wanted.keys()
            for key, x in wanted.items():
                assert got[key].tobytes() == x.tobytes(), key


def test_a_server_alone_cannot_load():
    def act(comm):
        model = Point()
        optimizer = create_server_optimizer(SGD().setup(model), comm, 0, servers=1)
        if optimizer.is_server:
            other = SGD().setup(Point())
            other.update(other.target, np.ones(11))
            source = renga.serializers.NpzDeserializer(programs.saved(other))
            optimizer.serialize(source)
            optimizer.serve()
        else:
            optimizer.update(model, np.ones(11))

    with pytest.raises(ValueError, match="expected the workers, .* to load a file"):
        simulated.run(act, 2)


@pytest.mark.parametrize("name", ["server", "local", "elastic", "dpsgd"])
def test_all_ranks_get_what_rank_0_alone_has_loaded(name):
    """Parameters, momenta, and the momentum of an outer optimizer."""

    def make(optimizer, comm):
        if name != "local":
            return MAKE[name](optimizer, comm)
        outer = NesterovAG(0.7, 0.9)
        return create_local_sgd_optimizer(optimizer, comm, 2, outer=outer)

    def act(comm, files):
        model = Point(value=3.0 * comm.rank)
        optimizer = make(MomentumSGD(0.1).setup(model), comm)
        if files and (comm.rank == 0 or len(files) > 1):
            for obj, file in zip((optimizer, model), files[comm.rank % len(files)]):
                obj.serialize(renga.serializers.NpzDeserializer(file))
        for target in targets(0, 4):
            optimizer.update(model, target)
        found = programs.saved(optimizer), programs.saved(model)
        optimizer.join()
        return found

    saved = local.run(act, None, ranks=2)
    alone = local.run(act, saved[:1], ranks=2)
    together = local.run(act, [saved[0], saved[0]], ranks=2)
    for found, expected in zip(alone, together):
        for got, wanted in zip(found, expected):
            assert got.keys() == wanted.keys()
            for key, x in wanted.items():
                assert got[key].tobytes() == x.tobytes(), key


def test_what_diloco_has_frozen_does_not_move():
    """Nor by the momentum of the outer optimizer, which goes on when it is thawed."""

    def act(comm):
        model = Point()
        optimizer = create_local_sgd_optimizer(
            SGD(0.3).setup(model), comm, 2, outer=NesterovAG(0.7, 0.9)
        )
        found = []
        for step, target in enumerate(targets(comm.rank, 12)):
            model.a.update_rule.enabled = not 4 <= step < 8
            optimizer.update(model, target)
            found.append(model.vector())
        return found

    def expected(frozen):
        x, anchor, v = np.zeros((2, 11)), np.zeros(11), np.zeros(11)
        drawn = np.stack([targets(r, 12) for r in range(2)])
        steps = [s for s in range(12) if not frozen or not 4 <= s < 8]
        for count, step in enumerate(steps, 1):
            x -= 0.3 * (x - drawn[:, step])
            if count % 2 == 0:
                gradient = anchor - x.mean(axis=0)
                v = 0.9 * v - 0.7 * gradient
                anchor = anchor + 0.81 * v - 1.9 * 0.7 * gradient
                x[:] = anchor
        return anchor

    for found in local.run(act, ranks=2):
        for step in range(4, 8):
            np.testing.assert_array_equal(found[step][:6], found[3][:6])
        np.testing.assert_allclose(found[-1][:6], expected(True)[:6], atol=1e-12)
        np.testing.assert_allclose(found[-1][6:], expected(False)[6:], atol=1e-12)


def test_averages_follow_what_the_caller_loads():
    """Of DiLoCo, the next move begins there; the center of elastic averaging, too."""

    def act(comm, make):
        model = Point()
        optimizer = make(SGD(0.3).setup(model), comm)
        for step, target in enumerate(targets(comm.rank, 4)):
            if step == 3:
                model.a.array[...], model.b.array[...] = 2.0, 2.0
            optimizer.update(model, target)
        with optimizer.averaged():
            return model.vector()

    drawn = np.stack([targets(r, 4)[3] for r in range(2)])
    moved = 2 - 0.3 * (2 - drawn)
    center = 2 + 0.45 * (moved - 2).sum(axis=0)
    for found in local.run(act, MAKE["elastic"], ranks=2):
        np.testing.assert_allclose(found, center, rtol=0, atol=1e-12)

    def diloco(optimizer, comm):
        return create_local_sgd_optimizer(optimizer, comm, 2, outer=SGD(0.7))

    expected = 2 + 0.7 * (moved.mean(axis=0) - 2)
    for found in local.run(act, diloco, ranks=2):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_weight_decay_of_dpsgd_is_part_of_the_gradient_of_each_rank():
    from renga.optimizer_hooks import WeightDecay

    def act(comm):
        model = Point()
        optimizer = SGD(0.3).setup(model)
        optimizer.add_hook(WeightDecay(0.2))
        optimizer = create_gossip_optimizer(optimizer, comm, "dpsgd", Ring())
        for target in targets(comm.rank, 4):
            optimizer.update(model, target)
        return model.vector()

    x = np.zeros((3, 11))
    weights = Ring().weights(3, 0)
    for step in range(4):
        gradient = 1.2 * x - np.stack([targets(r, 4)[step] for r in range(3)])
        x = weights @ x - 0.3 * gradient
    for rank, found in enumerate(local.run(act, ranks=3)):
        np.testing.assert_allclose(found, x[rank], rtol=0, atol=1e-12)


def test_a_stateful_link_without_shapes_begins_once():
    """The pass that finds shapes leaves no state behind, and may differentiate."""

    class Net(renga.Chain):
        def __init__(self):
            super().__init__()
            draw = renga.initializers.Uniform(0.4, rng=np.random.RandomState(0))
            with self.init_scope():
                self.lstm = renga.links.LSTM(None, 3, draw, draw)

        def forward(self, x):
            x = renga.Variable(x)
            y = renga.functions.sum(self.lstm(x) ** 2)
            (slope,) = renga.grad([y], [x], enable_double_backprop=True)
            return y + renga.functions.sum(slope**2)

    def act(comm, wrap):
        model = Net()
        optimizer = wrap(SGD(0.1).setup(model), comm)
        x = np.linspace(-1, 1, 8).reshape(4, 2).astype("float32")
        for _ in range(3):
            optimizer.update(model, x)
        if wrap in MAKE.values():
            optimizer.join()
        return parameters(model)

    (expected,) = local.run(act, lambda opt, comm: opt, ranks=1)
    for name in ("server", "local"):
        for found in local.run(act, MAKE[name], ranks=2):
            for key, x in expected.items():
                np.testing.assert_allclose(found[key], x, rtol=0, atol=1e-5)
    for found in local.run(act, create_multi_node_optimizer, ranks=2):
        for key, x in expected.items():
            np.testing.assert_allclose(found[key], x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MAKE)
def test_gradients_of_replaced_parameters_are_dropped(name):
    """As by a multi-node optimizer: the first update only shares rank 0's."""

    def act(comm, value):
        model = Point(value=value * comm.rank)
        optimizer = MAKE[name](SGD(0.1).setup(model), comm)
        model.cleargrads()
        model(np.ones(11)).backward()
        optimizer.update()
        optimizer.join()
        return model.vector()

    for value, expected in ((5.0, 0.0), (0.0, 0.1)):
        for x in local.run(act, value, ranks=2):
            if name in ("stale", "hogwild") and value == 0:
                expected = 0.2  # each rank's gradient makes an update
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
