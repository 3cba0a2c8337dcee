"""Without staleness: the bits of synchronous training, also when resumed."""

import io

import numpy as np
import pytest

import renga
from renga.communicators import local, simulated
from renga.distributed import create_multi_node_optimizer
from renga.distributed.asynchronous import create_server_optimizer
from renga.optimizer_hooks import WeightDecay
from renga.optimizers import LAMB, SGD, Adam, MomentumSGD
from tests.parallel.asynchronous.quadratics import (
    Classifier,
    Point,
    batches,
    parameters,
)

STEPS = 6
OPTIMIZERS = {
    "sgd": lambda: SGD(0.5),
    "momentum": lambda: MomentumSGD(0.1),
    "adam": lambda: Adam(0.05),
    "lamb": lambda: LAMB(0.05),
}


def train(comm, make, name="sgd", servers=0):
    run = Run(comm, make, name, servers)
    if getattr(run.optimizer, "is_worker", True):
        run.go(slice(STEPS))
    else:
        run.optimizer.serve()
    return run


class Run:
    """Model and optimizer, in the order in which an updater saves them."""

    def __init__(self, comm, make, name="sgd", servers=0):
        # The parameters of the first rank that computes are the ones to begin with.
        self.model = Classifier(seed=abs(comm.rank - servers))
        optimizer = OPTIMIZERS[name]().setup(self.model)
        optimizer.add_hook(WeightDecay(0.01))
        self.optimizer = make(optimizer, comm)
        group = getattr(self.optimizer, "_group", comm)  # the ranks that compute
        self.rank, self.size = (group.rank, group.size) if group else (0, 1)

    def serialize(self, serializer):
        self.optimizer.serialize(serializer["optimizer"])
        self.model.serialize(serializer["model"])

    def go(self, steps):
        for x, t in batches(2 * STEPS)[steps]:
            part = slice(self.rank, None, self.size)
            self.optimizer.update(self.model, x[part], t[part])
        return self

    def ended(self):
        if hasattr(self.optimizer, "join"):
            self.optimizer.join()
        return parameters(self.model)


def bsp(**options):
    return lambda opt, comm: create_server_optimizer(opt, comm, 0, **options)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("shards", [None, 1, 3])
def test_without_staleness_it_is_synchronous_training_bitwise(
    ranks_with_threads, name, shards
):
    def act(comm):
        synchronous = train(comm, create_multi_node_optimizer, name)
        served = train(comm, bsp(shards=shards), name).ended()
        return parameters(synchronous.model), served

    for synchronous, served in ranks_with_threads(act):
        for key, x in synchronous.items():
            np.testing.assert_array_equal(served[key], x)


@pytest.mark.parametrize("servers", [1, 2])
def test_servers_of_their_own(servers):
    """Four workers, on virtual ranks, against four synchronous ones."""

    def act(comm):
        run = train(comm, bsp(servers=servers), "adam", servers)
        return run.ended() if run.optimizer.is_worker else None

    outcome = simulated.run(act, 4 + servers)
    assert outcome.results[:servers] == [None] * servers
    expected = local.run(
        lambda comm: parameters(train(comm, create_multi_node_optimizer, "adam").model),
        ranks=4,
    )
    for served in outcome.results[servers:]:
        for key, x in expected[0].items():
            np.testing.assert_array_equal(served[key], x)


class DecayOfMatrices:
    """A hook that leaves biases, which it knows by their axes."""

    name, timing, call_for_each_param = "DecayOfMatrices", "pre", True

    def __call__(self, rule, param):
        if param.ndim > 1:
            param.grad += 0.5 * param.array


@pytest.mark.parametrize("servers", [0, 1])
def test_hooks_see_whole_parameters_in_their_shapes(servers):
    """Where workers share memory, and by messages to a server."""

    def with_hook(make):
        def made(optimizer, comm):
            optimizer.add_hook(DecayOfMatrices())
            return make(optimizer, comm)

        return made

    def serve(comm):
        run = train(comm, with_hook(bsp(servers=servers or None)), "momentum", servers)
        return run.ended() if comm.rank >= servers else None

    def synchronous(comm):
        make = with_hook(create_multi_node_optimizer)
        return parameters(train(comm, make, "momentum").model)

    expected = local.run(synchronous, ranks=2)[0]
    for served in local.run(serve, ranks=2 + servers)[servers:]:
        for key, x in expected.items():
            np.testing.assert_array_equal(served[key], x)


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_resumed_synchronous_training_has_the_same_bits(ranks_with_threads, name):
    def act(comm):
        first = train(comm, bsp(), name)
        file = io.BytesIO()
        renga.serializers.save_npz(file, first)
        first.go(slice(STEPS, None))
        expected = first.ended()
        file.seek(0)
        second = Run(comm, bsp(shards=2), name)  # in another division
        renga.serializers.load_npz(file, second)
        return expected, second.go(slice(STEPS, None)).ended()

    for expected, resumed in ranks_with_threads(act):
        for key, x in expected.items():
            np.testing.assert_array_equal(resumed[key], x)


@pytest.mark.parametrize("steps", [0, 2])
def test_servers_count_the_updates(steps):
    def act(comm):
        run = Run(comm, bsp(servers=1), servers=1)
        if run.optimizer.is_worker:
            run.go(slice(steps)).ended()
        else:
            run.optimizer.serve()
        return run.optimizer.t

    assert simulated.run(act, 3).results == [steps] * 3


def test_the_learning_rate_of_the_worker_counts():
    def act(comm):
        model = Point(value=1.0)
        optimizer = create_server_optimizer(SGD(0.5).setup(model), comm, 0)
        optimizer.update(model, np.zeros(11))
        optimizer.lr = 0.25
        optimizer.update(model, np.zeros(11))
        optimizer.join()
        return model.vector()

    for x in local.run(act, ranks=2):
        np.testing.assert_array_equal(x, 0.5 * 0.75)
